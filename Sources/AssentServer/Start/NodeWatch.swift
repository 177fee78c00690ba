import AssentConfiguration
import AssentCore
import AssentEngine
import AssentStore
import Foundation
import Logging

/// Looks at what a node has in common with others of its database, when it starts and every minute: that its id is its
/// own, and that its clock goes as the database server's.
///
/// Times in the database come from the nodes. One that is late keeps alive what has ended for the others.
final class NodeWatch: Sendable {
    private struct State {
        var hold: (any NodeHold)?
        var isClockOff = false
        var isNodeTaken = false
        var isClockWarned = false
        /// The loss that is in the audit log.
        var recordedLoss: Int64?
    }

    private let context: EngineContext
    private let location: DatabaseLocation
    private let clockLimit: Duration?
    private let state: Locked<State>

    /// Seconds between two looks.
    static let interval: TimeInterval = 60

    /// A difference from which on it is in the log.
    private static let warning = Duration.seconds(5)

    /// A watch of a node that has its id.
    ///
    /// - Parameters:
    ///   - context: the node.
    ///   - location: its database.
    ///   - hold: its id.
    ///   - clockLimit: the difference of the clocks from which on the node is not ready; `nil` to compare nothing.
    init(_ context: EngineContext, _ location: DatabaseLocation, _ hold: any NodeHold, clockLimit: Duration?) {
        self.context = context
        self.location = location
        self.clockLimit = clockLimit
        state = Locked(State(hold: hold))
    }

    /// Takes the node's id before a start does anything.
    ///
    /// - Throws: ``ConfigurationError`` when another server has the id, or when the database cannot be used.
    static func hold(_ node: String, _ location: DatabaseLocation, in directory: DataDirectory) async throws
        -> any NodeHold
    {
        guard let hold = try await location.explaining({ try await location.hold(node: node) }) else {
            throw ConfigurationError(
                file: directory.file("node"), line: nil,
                "another server of the database has this node id, as after a data directory was copied: remove the file, "
                    + "and the start makes another id. If this server's machine has just crashed, start it again in a "
                    + "minute")
        }
        return hold
    }

    /// Why the node is not ready; `nil` while it is.
    var reason: NotReady? {
        state.withLock { $0.isNodeTaken ? .nodeIDTaken : $0.isClockOff ? .clock : nil }
    }

    /// Gives the node's id up.
    func end() { state.withLock { $0.hold }?.release() }

    /// Looks. When the database does not answer, the last look stands.
    func look() async {
        await lookAtNode()
        await lookAtClock()
    }

    /// Records, once, that changes were lost that the database had acknowledged to this node.
    ///
    /// - Throws: ``StoreError``: it is not recorded yet.
    func recordLoss() async throws {
        guard let generation = context.database.notices.lossyGeneration,
            state.withLock({ $0.recordedLoss != generation })
        else { return }
        try await AuditLog(context).write(
            AuditRecord(.databaseLoss, .success, detail: ["generation": .integer(generation)]))
        state.withLock { $0.recordedLoss = generation }
    }

    private func lookAtNode() async {
        guard state.withLock({ $0.hold?.isHeld != true }) else { return }
        do {
            let hold = try await location.hold(node: context.node)
            let wasTaken = state.withLock { state in
                defer { (state.hold, state.isNodeTaken) = (hold, hold == nil) }
                return state.isNodeTaken
            }
            if hold == nil, !wasTaken {
                context.logger.error(
                    "another server of the database has this node's id; stop one of the two, and remove the file 'node' from its data directory",
                    metadata: ["node": "\(context.node)"])
            }
        } catch {
            context.logger.debug("the node's id could not be taken again", metadata: ["error": "\(error)"])
        }
    }

    private func lookAtClock() async {
        guard let clockLimit else { return }
        guard let ahead = try? await context.database.lead(of: context.clock) else { return }
        let difference = Duration.milliseconds(abs(ahead))
        let isOff = difference >= clockLimit
        let isWarned = difference >= Self.warning
        let (wasOff, wasWarned) = state.withLock { state in
            defer {
                state.isClockOff = isOff
                state.isClockWarned = isWarned
            }
            return (state.isClockOff, state.isClockWarned)
        }
        let metadata: Logger.Metadata = [
            "milliseconds": "\(abs(ahead))", "clock": ahead > 0 ? "ahead" : "behind",
            "limit": "\(clockLimit.components.seconds) s",
        ]
        if isOff, !wasOff {
            context.logger.error(
                "this node's clock differs too much from the database server's, so it is not ready: let both follow NTP",
                metadata: metadata)
        } else if isWarned, !isOff, !wasWarned || wasOff {
            context.logger.warning(
                "this node's clock differs from the database server's: let both follow NTP", metadata: metadata)
        } else if !isWarned, wasWarned {
            context.logger.notice("this node's clock goes as the database server's again")
        }
    }
}
