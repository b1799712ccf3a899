#pragma once

namespace krigtune::page {

/// style.css and script.js, compiled in: assets.cpp.in.
extern const char* const kStyle;
extern const char* const kScript;

}  // namespace krigtune::page
