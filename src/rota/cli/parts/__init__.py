"""What the commands share: options, the target, listings, prompts, exit codes. Must not import a command."""
