import AssentCore
import Foundation
import Logging
import NIOPosix

/// The trust files that a server serves: reads their directories when they are asked for, at most every few seconds,
/// so that a version that was put there is served without a restart.
actor TrustFileShelf {
    /// For how many seconds nothing is read again.
    static let interval: TimeInterval = 5

    private struct Shelf {
        let path: String
        var versions: [Int: TrustFileDirectory.Version] = [:]
        /// What was said last, so that it is said once.
        var said: [String] = []
        /// How long it is not read again. A clock that was put back must not keep it from being read.
        var pause: WaitingTime?
        var reading: Task<Void, Never>?
    }

    private var shelves: [String: Shelf]
    private let clock: any WallClock
    private let logger: Logger

    /// - Parameters:
    ///   - directories: where the versions are, by the names under which they are asked for.
    ///   - clock: tells when to read again.
    ///   - logger: is told what is not served.
    init(_ directories: [String: String], clock: any WallClock, logger: Logger) {
        shelves = directories.mapValues { Shelf(path: $0) }
        (self.clock, self.logger) = (clock, logger)
    }

    /// Reads all directories, so that the log has what is wrong before somebody asks.
    func begin() async {
        for name in shelves.keys.sorted() { await read(name) }
    }

    /// A version of a trust file; `nil` when there is none.
    func version(_ number: Int, of name: String) async -> TrustFileDirectory.Version? {
        guard let shelf = shelves[name] else { return nil }
        if let reading = shelf.reading {
            await reading.value
        } else if shelf.pause?.isOver(at: clock.now) ?? true {
            let reading = Task { await read(name) }
            shelves[name]?.reading = reading
            await reading.value
        }
        return shelves[name]?.versions[number]
    }

    private func read(_ name: String) async {
        guard let shelf = shelves[name] else { return }
        let (path, known) = (shelf.path, shelf.versions)
        let faults: [String]
        do {
            let found = try await NIOThreadPool.singleton.runIfActive { try TrustFileDirectory(path, knowing: known) }
            shelves[name]?.versions = found.versions
            faults = found.faults
        } catch {
            // What was read last counts: a file system that is away for a moment takes nothing from apps.
            faults = [(error as? TrustFileDirectory.Unreadable)?.description ?? "the directory cannot be read"]
        }
        shelves[name]?.pause = WaitingTime(Self.interval, from: clock.now)
        shelves[name]?.reading = nil
        guard faults != shelf.said else { return }
        shelves[name]?.said = faults
        for fault in faults.prefix(Self.complaints) {
            logger.warning("a trust file is not served", metadata: ["of": "\(name)", "why": "\(fault)"])
        }
    }

    /// How many faults of a directory are logged.
    private static let complaints = 8
}
