#pragma once
#include <stdexcept>
#include <string>

namespace krigtune {

/// The user's input is wrong: one line that says what, where and the mend. The programs print it and exit with 2.
class UserError : public std::runtime_error {
 public:
  /// `what`: what is wrong and where; `hint`: how to mend it (may be empty).
  explicit UserError(const std::string& what, const std::string& hint = "");
};

/// The environment lacks something. The programs print it and exit with 3.
class EnvironmentError : public std::runtime_error {
 public:
  explicit EnvironmentError(const std::string& what, const std::string& hint = "");
};

}  // namespace krigtune
