import AssentCore
import Foundation

@testable import AssentVault

/// A disk in memory that can fail, be killed or lose power before any operation, and that then forgets what was not
/// synced.
///
/// File content is on the platter after `sync`; directory entries after `syncDirectory`. What was not synced when the
/// power went is there or not, each piece by itself and in any order, as POSIX allows; see ``outcomes``.
final class SimulatedDisk: VaultDirectory {
    struct PowerLoss: Error {}

    struct State {
        var volatile: [Int: [UInt8]] = [:]
        var durable: [Int: [UInt8]] = [:]
        var entries: [String: Int] = [:]
        /// What each name that was changed has stood for since the directory was last synced, the oldest first.
        var history: [String: [Int?]] = [:]
        var lastFile: Int = 2
        var steps: [String] = []
        var bytesWritten = 0
        var locks: Set<Int64> = []
    }

    /// What happens at a step, by its number from 0.
    enum Fault: Sendable {
        case powerLoss(at: Int)
        case failure(FileFailure.Reason, at: Int)
        /// The drive says that it synced and did not.
        case lostSync(at: Int)
        case readOnly
    }

    private let state: Locked<State>
    private let faults: Locked<[Fault]>

    init(faults: [Fault] = []) {
        state = Locked(State())
        self.faults = Locked(faults)
    }

    init(state: State) {
        self.state = Locked(state)
        faults = Locked([])
    }

    var bytesWritten: Int { state.withLock { $0.bytesWritten } }
    var steps: [String] { state.withLock { $0.steps } }

    /// Counts steps from here and lets `faults` happen.
    func arm(_ faults: [Fault]) {
        state.withLock { $0.steps = [] }
        self.faults.withLock { $0 = faults }
    }

    /// Every disk that may be found when the power comes back.
    var outcomes: DiskOutcomes { DiskOutcomes(state.withLock { $0 }) }

    /// The disk as another process finds it after this one was killed: whole, but what was not synced still is not.
    func afterKill() -> SimulatedDisk {
        var copy = state.withLock { $0 }
        copy.locks = []
        copy.steps = []
        return SimulatedDisk(state: copy)
    }

    /// An independent copy of what is there.
    func copy() -> SimulatedDisk {
        var copy = state.withLock { $0 }
        copy.durable = copy.volatile
        copy.history = [:]
        copy.locks = []
        copy.steps = []
        return SimulatedDisk(state: copy)
    }

    /// Direct access for a test that damages files.
    subscript(name: String) -> [UInt8]? {
        get { state.withLock { state in state.entries[name].flatMap { state.volatile[$0] } } }
        set {
            state.withLock { state in
                state.lastFile += 1
                state.entries[name] = newValue == nil ? nil : state.lastFile
                state.history[name] = nil
                state.volatile[state.lastFile] = newValue
                state.durable[state.lastFile] = newValue
            }
        }
    }

    var names: [String] { state.withLock { $0.entries.keys.sorted() } }

    /// Counts a step that changes the disk. Returns whether it takes effect.
    private func step(_ name: String) throws -> Bool {
        let number = state.withLock { state in
            state.steps.append(name)
            return state.steps.count - 1
        }
        for fault in faults.withLock({ $0 }) {
            switch fault {
            case .powerLoss(let at) where number >= at: throw PowerLoss()
            case .failure(let reason, let at) where number == at: throw FileFailure(operation: name, reason: reason)
            case .lostSync(let at) where number == at: return false
            case .readOnly: throw FileFailure(operation: name, reason: .notPermitted)
            default: break
            }
        }
        return true
    }

    func list() throws -> [String] { names }

    func read(_ name: String, limit: Int, isPrivate: Bool) throws -> [UInt8]? {
        guard let content = self[name] else { return nil }
        guard content.count <= limit else { throw FileFailure(operation: "reading", reason: .tooLong) }
        return content
    }

    func create(_ name: String) throws -> Int32 {
        _ = try step("create")
        return try state.withLock { state in
            guard state.entries[name] == nil else { throw FileFailure(operation: "create", reason: .other(17)) }
            state.lastFile += 1
            state.volatile[state.lastFile] = []
            state.enter(name, state.lastFile)
            return Int32(state.lastFile)
        }
    }

    func write(_ bytes: [UInt8], to file: Int32) throws {
        state.withLock { $0.volatile[Int(file), default: []] += bytes.prefix(bytes.count / 2) }
        _ = try step("write")
        state.withLock { state in
            state.volatile[Int(file), default: []] += bytes.dropFirst(bytes.count / 2)
            state.bytesWritten += bytes.count
        }
    }

    func sync(_ file: Int32) throws {
        guard try step("sync") else { return }
        state.withLock { $0.durable[Int(file)] = $0.volatile[Int(file)] }
    }

    func close(_ file: Int32) {}

    func rename(_ source: String, to target: String) throws {
        _ = try step("rename")
        try state.withLock { state in
            guard let file = state.entries[source] else {
                throw FileFailure(operation: "rename", reason: .missing)
            }
            state.enter(target, file)
            state.enter(source, nil)
        }
    }

    func link(_ source: String, to target: String) throws -> Bool {
        _ = try step("link")
        return state.withLock { state in
            guard state.entries[target] == nil, let file = state.entries[source] else { return false }
            state.enter(target, file)
            return true
        }
    }

    func remove(_ name: String) throws {
        _ = try step("remove")
        state.withLock { state in
            if state.entries[name] != nil { state.enter(name, nil) }
        }
    }

    func syncDirectory() throws {
        guard try step("syncDirectory") else { return }
        state.withLock { $0.history = [:] }
    }

    func tryLock(at offset: Int64) throws -> (any FileLock)? {
        guard state.withLock({ $0.locks.insert(offset).inserted }) else { return nil }
        return Held(disk: self, offset: offset)
    }

    private struct Held: FileLock {
        let disk: SimulatedDisk
        let offset: Int64
        func release() { _ = disk.state.withLock { $0.locks.remove(offset) } }
    }
}
