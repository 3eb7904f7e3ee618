"""What goes on after a corrected call: policies, which answer a conversation with a text or with calls."""
