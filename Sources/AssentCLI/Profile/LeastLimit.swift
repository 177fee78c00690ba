import Foundation

/// What the limits in time of a client's calls are raised to, and of what a server waits for: silent connections, the
/// database, and the last steps of a stop.
enum LeastLimit {
    /// How long each limit in time of a call is at least; `nil` when the calls' own hold.
    ///
    /// Tests start the program on machines that are busy or stand still, and say so in its environment. A program that
    /// was built for release does not look there.
    static func ofCalls(_ environment: [String: String] = ProcessInfo.processInfo.environment) -> Duration? {
        #if DEBUG
        guard let seconds = environment["ASSENT_LEAST_SECONDS"].flatMap({ Int64($0) }), (0...86_400).contains(seconds)
        else { return nil }
        return Duration.seconds(seconds)
        #else
        return nil
        #endif
    }

    /// How many seconds the last steps of a stop may take, whose usual number is `usual`.
    static func ofStop(_ usual: Int) -> Int { max(usual, ofCalls().map { Int($0.components.seconds) } ?? usual) }
}
