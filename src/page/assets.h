#pragma once

namespace krigtune::page {

/// The compiled-in contents of style.css and script.js: assets.cpp.in.
extern const char* const kStyle;
extern const char* const kScript;

}  // namespace krigtune::page
