"""Forward and backward passes, in little memory; the head of a critic or a reward model; AdamW."""
