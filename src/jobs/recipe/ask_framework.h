#pragma once

namespace krigtune::jobs {

/// The text of ask_framework.py, which the build compiles in (ask_framework.cpp.in).
extern const char* const kAskFramework;

}  // namespace krigtune::jobs
