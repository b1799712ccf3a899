#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "space/space.h"
#include "space/vocabulary.h"

namespace krigtune::trial {

/// A name that may be used in braces, and the kind of its value.
struct KnownName {
  std::string name;
  space::Kind kind = space::Kind::kAny;
};
using KnownNames = std::vector<KnownName>;

/// A text with placeholders, parsed once:
///
///   --mbs={micro_batch}              a name
///   {reduce_bucket_size / 1e6:.0f}   an expression (space/expression.h), and after ':' how it is written (as in
///   Python)
///   {{ and }}                        braces
///
/// A single brace that encloses neither a name nor an expression is literal, so that JSON and awk programs work
/// unchanged: its contents begin or end with a blank, contain no name, or are not an expression and contain no known
/// name. "}}" means two braces if the first of them closes a single one.
class PlaceholderText {
 public:
  PlaceholderText() = default;
  /// Throws UserError with the place and the fix for an unknown name, an invalid expression that contains a known name,
  /// and a format that its value cannot have.
  PlaceholderText(const std::string& text, const KnownNames& known);

  const std::string& text() const { return text_; }
  std::vector<std::string> names() const;  ///< the names that it uses, each once
  bool is_plain() const;                   ///< it has no placeholder
  /// Returns the kind of the value if the text is a single placeholder; otherwise kAny.
  space::Kind kind() const;

  /// Throws UserError if an expression is undefined (division by zero) or a format does not fit its value.
  std::string filled(const space::Expression::Lookup& values) const;

 private:
  struct Placeholder {
    std::string text;  ///< with its braces
    space::Expression expression;
    std::string format;
    space::Kind kind = space::Kind::kAny;
  };
  class Parser;

  std::string text_;
  std::vector<std::variant<std::string, Placeholder>> parts_;
};

/// The names of the trial itself that may be used in braces.
struct TrialNames {
  std::string dir = {};
  std::string config = {};
  std::string result = {};
  std::int64_t trial = 0;  ///< its number
  std::int64_t port = 0;   ///< a TCP port that was free when the trial began
  std::int64_t slot = 0;   ///< distinguishes concurrent trials
  std::string gpus = {};   ///< as from gpu_list; "": all GPUs of the machine, or known only to a scheduler
};
/// Returns "2,3", the form of CUDA_VISIBLE_DEVICES.
std::string gpu_list(const std::vector<int>& gpus);

bool is_name_of_trial(std::string_view name);  ///< one of these

/// The value of every name in one trial.
using NamedValues = std::map<std::string, space::Value, std::less<>>;
space::Expression::Lookup lookup_in(const NamedValues& values);  ///< `values` must outlive it

/// The names that a session's commands may use: its parameters and what it fixes, the facts of the job that its
/// constraints may use (space/vocabulary.h), and config, result, dir, trial, port, slot and gpus.
class JobNames {
 public:
  explicit JobNames(const space::Space& space);  ///< copies what it needs

  const KnownNames& known() const { return known_; }
  /// A parameter that does not exist in the configuration has its default or, failing that, its first value.
  NamedValues values(const space::Configuration& configuration, const TrialNames& trial) const;

 private:
  std::vector<space::Parameter> parameters_;  ///< including fixed ones
  space::Configuration fixed_;
  bool well_known_;
  space::Vocabulary vocabulary_;
  KnownNames known_;
};

/// Returns a TCP port of this machine that is unused now. Throws EnvironmentError if there is none.
std::int64_t free_port();

}  // namespace krigtune::trial
