"""Pages that show students' work to people, made harmless: Markdown, TeX, formulas."""
