"""From what was seen to verdicts: exhibits, live triggers, verdicts of rules, the kill matrix (design §6)."""
