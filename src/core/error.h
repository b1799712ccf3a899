#pragma once
#include <stdexcept>
#include <string>
namespace krigtune {

/// The user's input is wrong: one line that says what is wrong, where, and how to fix it. The programs print the line
/// and exit with 2.
class UserError : public std::runtime_error {
 public:
  /// `what`: what is wrong and where; `hint`: how to fix it (may be empty).
  explicit UserError(const std::string& what, const std::string& hint = "");
};

/// The environment lacks something that the program needs. The programs print the line and exit with 3.
class EnvironmentError : public std::runtime_error {
 public:
  explicit EnvironmentError(const std::string& what, const std::string& hint = "");
};

/// Returns whether an errno means that the machine lacks something (space, a quota, descriptors, memory, a working
/// disk), which is an EnvironmentError. False if the path or its permissions are to blame, which is a UserError.
bool is_shortage(int error);

/// The exit codes of krigtune-bench. 128 + n means that signal n ended it.
struct BenchExit {
  static constexpr int kOk = 0;
  static constexpr int kFindings = 1;  ///< --check found errors in the plan
  static constexpr int kBadInput = 2;
  static constexpr int kEnvironmentLacks = 3;
  static constexpr int kInternal = 4;
  static constexpr int kPredictedOutOfMemory = 10;
  static constexpr int kOutOfMemory = 11;
  static constexpr int kHang = 12;           ///< no step has ended for --hang-s
  static constexpr int kCommunication = 13;  ///< another process of the job is gone
  static constexpr int kNumericalFailure = 14;
  static constexpr int kNoDevice = 77;
};

/// A failure that determines the exit code of the run, one of BenchExit.
class CodedError : public std::runtime_error {
 public:
  CodedError(int exit_code, const std::string& what) : std::runtime_error(what), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

}  // namespace krigtune
