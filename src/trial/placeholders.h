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

/// What may stand in braces, and what kind of value it has.
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
/// A single brace that encloses neither name nor expression stands for itself, so that JSON and awk programs need
/// nothing: what is in it begins or ends with a blank, uses no name, or is no expression and uses no known name. "}}"
/// is two braces where the first of them closes a single one.
class PlaceholderText {
 public:
  PlaceholderText() = default;
  /// Throws UserError with the place and the fix: a name that is not known, an expression that is none although it has
  /// a known name, a format that its value cannot have.
  PlaceholderText(const std::string& text, const KnownNames& known);

  const std::string& text() const { return text_; }
  std::vector<std::string> names() const;  ///< that it uses, each once
  bool is_plain() const;                   ///< it has no placeholder
  /// The only placeholder, where there is nothing else: the kind of the value. Else kAny.
  space::Kind kind() const;

  /// Throws UserError where an expression is undefined (a division by zero) or a format does not fit its value.
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

/// What of a trial itself may stand in braces.
struct TrialNames {
  std::string dir = {};
  std::string config = {};
  std::string result = {};
  std::int64_t trial = 0;  ///< its number
  std::int64_t port = 0;   ///< free for TCP when the trial began
  std::int64_t slot = 0;   ///< of trials at the same time
  std::string gpus = {};   ///< as gpu_list writes them; "": all of the machine's, or known to a scheduler alone
};
/// "2,3", as CUDA_VISIBLE_DEVICES takes them.
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
  /// A parameter that does not exist in the configuration stands for its default, else for its first value.
  NamedValues values(const space::Configuration& configuration, const TrialNames& trial) const;

 private:
  std::vector<space::Parameter> parameters_;  ///< what is fixed among them
  space::Configuration fixed_;
  bool well_known_;
  space::Vocabulary vocabulary_;
  KnownNames known_;
};

/// A TCP port of this machine that nobody uses now. Throws EnvironmentError where there is none.
std::int64_t free_port();

}  // namespace krigtune::trial
