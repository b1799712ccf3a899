#include "krigtune/core/error.h"

namespace krigtune {
namespace {

std::string one_line(const std::string& what, const std::string& hint) {
  return hint.empty() ? what : what + "; " + hint;
}

}  // namespace

UserError::UserError(const std::string& what, const std::string& hint) : std::runtime_error(one_line(what, hint)) {}

EnvironmentError::EnvironmentError(const std::string& what, const std::string& hint)
    : std::runtime_error(one_line(what, hint)) {}

}  // namespace krigtune
