#pragma once
#include <utility>

#include "forecast/warm_start.h"
#include "search/candidates/candidates.h"
#include "session/memory_filter.h"
#include "session/session.h"

namespace krigtune::run {

/// A session with everything that is computed from it once, before the first proposal: which configurations can fit
/// into memory, which may be asked, and what is believed about them.
///
///   const run::Prepared prepared(session::load_session("session.json"));
///   run::ask_by_hand(prepared.session, prepared.candidates, directory, options, clock, 1);
///
/// The candidates refer to the filter in the same object, so it can be neither copied nor moved.
struct Prepared {
  session::Session session;
  session::MemoryFilter filter;
  search::Candidates candidates;

  /// `earlier`: runs for a warm start.
  explicit Prepared(session::Session read, const forecast::EarlierRuns& earlier = {})
      : session(std::move(read)),
        filter(session),
        candidates(session, filter, forecast::make_priors(session, filter, earlier)) {}
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
};

}  // namespace krigtune::run
