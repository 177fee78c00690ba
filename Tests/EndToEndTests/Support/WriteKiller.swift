#if os(Linux)
import Foundation
import TestSupport
import Testing

/// Kills a program at one of its write points.
struct WriteKiller {
    private let library: String
    private let place: String

    /// Its library and its switch are put into a directory.
    init(in directory: String) async throws {
        (library, place) = (directory + "/kill.so", directory + "/switch")
        let source = PythonPeer.folder + "/kill-at-write.c"
        let words = ["clang", "-shared", "-fPIC", "-o", library, source, "-ldl"]
        let made = try await offPool { try FinishedProcess.run("/usr/bin/env", words) }
        try #require(made.status == 0, "\(made.complaints)")
    }

    /// The environment of a program that ends at this point of those below its home: before it, in its middle or after
    /// it, by turns.
    func environment(_ point: Int, _ kills: Int, _ program: Program) throws -> [String: String] {
        let way = ["before", "torn", "after"][kills % 3]
        try Data("\(point) \(way)".utf8).write(to: URL(fileURLWithPath: place))
        return ["LD_PRELOAD": library, "KILL_BELOW": program.home, "KILL_AT": place]
    }
}

extension Program.Result {
    /// As timeout(1) says it, and as we hear it of the program itself.
    var isKilled: Bool { [137, -SIGKILL].contains(status) }
}
#endif
