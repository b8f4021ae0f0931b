"""From a video to a scene graph: contact segments, keyframes, masks between keyframes, identities over segments."""
