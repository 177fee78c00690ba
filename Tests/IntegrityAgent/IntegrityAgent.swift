import Assent
import Foundation
import IntegrityTesting

/// A process that makes each kind of fetch, with the probes of this platform, and writes one line for each: its name,
/// whether it was refused, and how many calls have left by then. `ProbedProcessTests` starts it.
///
/// Usage: `IntegrityAgent DEBUGGER PRELOAD DIRECTORY [ALLOWED-LIBRARY]`, the first two `refuse`, `report` or `off`.
@main
struct IntegrityAgent {
    static func main() async throws {
        let words = Array(CommandLine.arguments.dropFirst())
        guard words.count >= 3, let debugger = IntegrityControl(rawValue: words[0]),
            let preload = IntegrityControl(rawValue: words[1])
        else { exit(64) }
        let fetches = try EachFetch(keys: URL(filePath: words[2]).appending(path: "keys")) {
            $0.integrity.controls = IntegrityControls(debugger: debugger, preload: preload, rooted: .off)
            $0.integrity.allowedPreloads = Set(words.dropFirst(3))
        }
        try await fetches.signIn()
        for kind in EachFetch.Kind.allCases {
            let isRefused = await fetches.isRefused(kind)
            print(kind.rawValue, isRefused ? "refused" : "passed", fetches.sent)
        }
    }
}
