#include "page/report/report_page.h"

#include <fmt/format.h>

#include "core/text.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/report/sections.h"

namespace krigtune::page {
namespace {

// Shows side by side what was measured, and whether it was predicted.
std::string progress_and_fit(const RunFacts& facts) { return figures({progress(facts), fit(facts)}); }

struct SectionMaker {
  const char* id;
  const char* title;
  std::string (*make)(const RunFacts&);
};

constexpr SectionMaker kSections[] = {
    {"answer", "The answer", answer},
    {"front", "The front", front},
    {"progress", "Progress", progress_and_fit},
    {"effects", "What matters", effects},
    {"job", "What the job is, as far as the trials say", believed_job},
    {"memory", "Memory", memory},
    {"time", "Where the time of a step goes", step_time},
    {"batch", "Batch size", batch},
    {"all", "All trials at once", all_at_once},
    {"timeline", "Where trials ran", timeline},
    {"trials", "Trials", trials},
    {"limits", "What this rests on", limits},
};

}  // namespace

std::string report_page(const ReportSource& source) {
  const RunFacts facts(source);
  Document document;
  document.title = fmt::format("krigtune: {}", source.run.name);
  document.header = paragraph(
      "krigtune tunes a training job: it runs short trials of it, each with another configuration, and "
      "learns from them which " +
      std::string(facts.session().others.empty() ? "is fastest." : "are on the front of its objectives."));
  document.header += paragraph(fmt::format("{}. {} Made {}.", counted(facts.answer().trials.closed, "trial"),
                                           escaped(sentence(source.state)), escaped(source.made)));
  for (const SectionMaker& section : kSections) {
    document.sections.push_back({section.id, section.title, section.make(facts)});
  }
  document.footer =
      paragraph(fmt::format("Made by krigtune of {}. The numbers are in trials.csv and best.json beside it.",
                            user_text(source.run.directory.string())));
  return page::document(document);
}

}  // namespace krigtune::page
