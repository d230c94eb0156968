"""What a run measures of itself: metrics, alarms, evaluations, tokens."""
