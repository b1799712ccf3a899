#pragma once
#include <stdexcept>
#include <string>

namespace krigtune {

/// A failure that knows how the run ends: one of bench/exit_codes.h.
class CodedError : public std::runtime_error {
 public:
  CodedError(int exit_code, const std::string& what) : std::runtime_error(what), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

}  // namespace krigtune
