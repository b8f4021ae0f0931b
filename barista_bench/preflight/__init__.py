"""Twenty questions with known answers, before a run is paid: `questions.py` asks them, `findings.py` reads them."""
