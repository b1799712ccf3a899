#pragma once

// Programs for the user's Python, which the build compiles in (python_programs.cpp.in).
namespace krigtune::jobs {

extern const char* const kAskFramework;  ///< the text of ask_framework.py
extern const char* const kBuildModel;    ///< the text of build_model.py

}  // namespace krigtune::jobs
