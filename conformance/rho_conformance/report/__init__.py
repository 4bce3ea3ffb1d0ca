"""What people and programs read of a judgement: a terminal table, JSON, JUnit, Markdown, one HTML page."""
