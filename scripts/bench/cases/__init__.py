"""What is measured, a file for each case: functions from settings to rows."""
