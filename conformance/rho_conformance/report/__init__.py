"""What people and programs read of a judgement: a terminal table, Markdown, JSON."""
