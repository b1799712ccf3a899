#pragma once
#include <string>

#include "core/error.h"

namespace krigtune {

/// Returns the line that a user would see, or "no error".
std::string user_error_of(const auto& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace krigtune
