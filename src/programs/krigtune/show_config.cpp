// --show-config: prints the session with every default, and the origin of each value. The resolved session no longer
// knows where its values came from, so the file is read again: a value that is in it came from it.
#include "programs/krigtune/show_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "core/text.h"
#include "programs/krigtune/document.h"

namespace krigtune::cli {
namespace {

using Pointer = Json::json_pointer;

constexpr const char* kDefault = "default";
constexpr const char* kDerived = "derived";

// Options that change a key of the session and everything below it.
constexpr std::array<std::pair<const char*, const char*>, 8> kOverrides{{
    {"trials", "/budget/trials"},
    {"hours", "/budget/hours"},
    {"full-budget", "/budget/regret"},
    {"full-budget", "/budget/least_gain"},
    {"full-budget", "/budget/run_gpu_hours"},
    {"from", "/runner"},
    {"jobs", "/executor/slots"},
    {"executor", "/executor"},
}};

std::string option_origin(const Arguments& arguments, const std::string& option) {
  const Arguments::Origin origin = arguments.origin(option);
  if (origin == Arguments::Origin::kNone) return kDefault;
  return fmt::format("{}: {}", origin == Arguments::Origin::kTyped ? "command line" : "environment",
                     arguments.named(option));
}

// Returns whether the value follows from other keys if it is not in the file.
bool is_derived(const Pointer& leaf, const Json& file) {
  const std::string text = leaf.to_string();
  for (const char* key : {"/workload/model/kv_heads", "/workload/model/ffn_hidden", "/objective/direction",
                          "/baseline/gradient_accumulation_steps"}) {
    if (text == key) return true;
  }
  return leaf.parent_pointer().to_string() == "/workload/model" && file.contains(Pointer("/workload/model/preset"));
}

/// The origins of the values of a resolved session.
class Origins {
 public:
  /// `settings`: options of the command itself, which change no key of the session.
  Origins(const Arguments& arguments, const SessionSource& source, const std::vector<RunSetting>& settings)
      : arguments_(arguments), file_(source.json), source_(source.name), settings_(settings) {}

  std::string of(const Pointer& leaf) const {
    const std::string text = leaf.to_string();
    for (const auto& [option, changed] : kOverrides) {
      const bool is_below = text == changed || text.rfind(std::string(changed) + "/", 0) == 0;
      const auto is_it = [&option = option](const RunSetting& setting) {
        return setting.option == std::string(option);
      };
      if (std::any_of(settings_.begin(), settings_.end(), is_it)) continue;
      if (is_below && arguments_.origin(option) != Arguments::Origin::kNone) return option_origin(arguments_, option);
    }
    if (file_.contains(leaf)) return source_;
    if (is_given_above(leaf)) return text.rfind("/space/", 0) == 0 ? source_ : kDerived;
    return is_derived(leaf, file_) ? kDerived : kDefault;
  }

 private:
  // A range represents its values, and "local" a whole cluster: then the file has a value above the leaf that is not a
  // block.
  bool is_given_above(Pointer above) const {
    while (!above.empty()) {
      above.pop_back();
      if (!file_.contains(above)) continue;
      const bool is_parameter = above.parent_pointer().to_string() == "/space";
      return is_parameter || !file_.at(above).is_object();
    }
    return false;
  }

  const Arguments& arguments_;
  const Json& file_;
  const std::string& source_;
  const std::vector<RunSetting>& settings_;
};

bool is_block(const Json& value) { return value.is_object() && !value.empty(); }

std::string one_line(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Adds the members of `block`, one on each line, with their origins.
void add_members(std::string& text, const Json& block, const Pointer& at, const Origins& origins,
                 const std::string& indent = "  ") {
  std::size_t left = block.size();
  for (const auto& [key, value] : block.items()) {
    const char* comma = --left > 0 ? "," : "";
    text += fmt::format("{}{}: ", indent, one_line(key));
    if (is_block(value)) {
      text += "{\n";
      add_members(text, value, at / key, origins, indent + "  ");
      text += fmt::format("{}}}{}\n", indent, comma);
    } else {
      text += fmt::format("{}{}  // {}\n", one_line(value), comma, origins.of(at / key));
    }
  }
}

void collect(Json& list, const Json& block, const Pointer& at, const Origins& origins) {
  for (const auto& [key, value] : block.items()) {
    if (is_block(value)) {
      collect(list, value, at / key, origins);
    } else {
      list[(at / key).to_string()] = origins.of(at / key);
    }
  }
}

std::string session_text(const Context& context, const session::Session& session, const Json& config,
                         const Origins& origins, const std::vector<RunSetting>& settings) {
  std::string text = fmt::format("// {} as krigtune {} understands it.\n", session.file.string(), KRIGTUNE_VERSION);
  for (const RunSetting& setting : settings) {
    const std::string value = setting.value.is_string() ? setting.value.get<std::string>() : one_line(setting.value);
    text += fmt::format("// --{} {}  // {}\n", setting.option, value, option_origin(context.arguments, setting.option));
  }
  text += "{\n";
  add_members(text, config, Pointer(), origins);
  return text + "}\n";
}

Json document_of(const Context& context, const Json& config, const Origins& origins,
                 const std::vector<RunSetting>& settings) {
  Json json = new_document("show-config");
  json["session"] = config;
  json["origins"] = Json::object();
  collect(json["origins"], config, Pointer(), origins);
  json["options"] = Json::object();
  for (const RunSetting& setting : settings) {
    json["options"][setting.option] = {{"value", setting.value},
                                       {"origin", option_origin(context.arguments, setting.option)}};
  }
  return json;
}

}  // namespace

void declare_show_config(boost::program_options::options_description& options) {
  options.add_options()("show-config",
                        "print every setting and its source, and run nothing. The output is a session file");
}

int show_config(const Context& context, const session::Session& session, const std::vector<RunSetting>& settings) {
  return show_config(context, session, settings, {load_json(session.file), "session file"});
}

int show_config(const Context& context, const session::Session& session, const std::vector<RunSetting>& settings,
                const SessionSource& source) {
  const Json config = session::resolved(session);
  const Origins origins(context.arguments, source, settings);
  if (context.arguments.flag("json")) {
    print(context, document_of(context, config, origins, settings));
  } else {
    context.console.out << session_text(context, session, config, origins, settings);
  }
  return ExitCode::kDone;
}

}  // namespace krigtune::cli
