"""A submission's points: cases in a secret order, judged answers, and where each was written."""
