#pragma once
#include <stdexcept>
#include <string>
namespace krigtune {

/// The user's input is wrong: one line that says what, where and the fix. The programs print it and exit with 2.
class UserError : public std::runtime_error {
 public:
  /// `what`: what is wrong and where; `hint`: how to fix it (may be empty).
  explicit UserError(const std::string& what, const std::string& hint = "");
};

/// The environment lacks something. The programs print it and exit with 3.
class EnvironmentError : public std::runtime_error {
 public:
  explicit EnvironmentError(const std::string& what, const std::string& hint = "");
};

/// Whether an errno says that the machine lacks something (space, a quota, descriptors, memory, a disk that works):
/// EnvironmentError. False where the path is to blame, or who may use it: UserError.
bool is_shortage(int error);

/// What krigtune-bench tells who started it; 128 + n are signals.
struct BenchExit {
  static constexpr int kOk = 0;
  static constexpr int kFindings = 1;  ///< of --check: the plan is wrong
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

/// A failure that knows how the run ends: one of BenchExit.
class CodedError : public std::runtime_error {
 public:
  CodedError(int exit_code, const std::string& what) : std::runtime_error(what), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

}  // namespace krigtune
