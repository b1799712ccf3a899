#include "programs/krigtune/prefer.h"

#include <fmt/format.h>

#include "core/error.h"
#include "report/front_text.h"
#include "session/objectives.h"

namespace krigtune::cli {

void declare_prefer(boost::program_options::options_description& options) {
  options.add_options()(kPrefer, value_named("BOUND"),
                        "with several objectives, choose from the front: 'throughput >= 0.95 best' is the best by the "
                        "next objective among those with 95 % of the best throughput, and '<= 3e10' an absolute bound");
}

void apply_prefer(const Context& context, session::Session& session) {
  const std::optional<std::string> text = context.arguments.text(kPrefer);
  if (text) session.preference = session::read_preference(session, *text, context.arguments.named(kPrefer));
}

void require_preferred(const Context& context, const session::Session& session,
                       const std::vector<search::FrontMember>& front) {
  if (!context.arguments.text(kPrefer) || search::preferred(session, front)) return;
  throw UserError(fmt::format("{}: no configuration of the front has {}", context.arguments.named(kPrefer),
                              session.preference->text),
                  front.empty() ? "wait until a trial has succeeded" : report::front_sentence(session, front));
}

}  // namespace krigtune::cli
