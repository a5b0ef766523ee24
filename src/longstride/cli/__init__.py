"""The command line: one file a command. Whatever is heavy is imported inside the command that needs it."""
