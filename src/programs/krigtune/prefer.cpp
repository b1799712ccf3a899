#include "programs/krigtune/prefer.h"

#include <fmt/format.h>

#include "core/error.h"
#include "report/front_text.h"

namespace krigtune::cli {
namespace {

std::size_t chosen_by_user(const Context& context, const session::Session& session,
                           const std::vector<search::FrontMember>& front) {
  const std::string text = context.arguments.text(kPrefer).value_or("");
  const std::string where = context.arguments.named(kPrefer);
  const search::Preference preference = search::read_preference(session, text, where);
  if (const std::optional<std::size_t> index = search::preferred(session, front, preference)) return *index;
  throw UserError(fmt::format("{}: no configuration of the front has {}", where, text),
                  front.empty() ? "wait until a trial has succeeded" : report::front_sentence(session, front));
}

}  // namespace

void declare_prefer(boost::program_options::options_description& options) {
  options.add_options()(kPrefer, value_named("BOUND"),
                        "with several objectives, choose from the front: 'throughput >= 0.95 best' is the best by the "
                        "next objective among those with 95 % of the best throughput, and '<= 3e10' an absolute bound");
}

std::optional<std::size_t> preferred_member(const Context& context, const report::RunView& run) {
  if (context.arguments.flag(kPrefer)) return chosen_by_user(context, run.session, run.answer.front);
  return run.answer.front.empty() ? std::nullopt : std::optional<std::size_t>(0);
}

std::int64_t preferred_trial(const Context& context, const LoadedRun& loaded, bool has_trial) {
  if (has_trial) throw UserError("--prefer and --trial cannot be combined", "leave one out");
  const std::vector<search::FrontMember> front = search::front_of(loaded.session(), loaded.history);
  return front[chosen_by_user(context, loaded.session(), front)].trial;
}

}  // namespace krigtune::cli
