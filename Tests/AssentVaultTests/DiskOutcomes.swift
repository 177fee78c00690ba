import AssentCore
import Foundation

/// Every state that POSIX allows a disk to be found in after it lost power, one after the other.
///
/// A directory that was not synced may hold any mixture: each name stands for any of the files that it stood for since
/// the last sync, whatever other names do, so that changes are dropped and reordered and a rename may be half done. The
/// content of a file that was not synced may be the old one, the new one, cut off anywhere, zeros of its length, or
/// zeros with a later block behind them; that a name is on the disk says nothing about the content of its file.
struct DiskOutcomes: Sequence, IteratorProtocol {
    private let state: SimulatedDisk.State
    /// The choice at each fork; the last one is counted up first.
    private var script: [Int] = []
    private var isDone = false

    init(_ state: SimulatedDisk.State) {
        self.state = state
    }

    mutating func next() -> SimulatedDisk? {
        if isDone { return nil }
        var forks: [Int] = []
        let found = wreck { options in
            if forks.count == script.count { script.append(0) }
            forks.append(options)
            return script[forks.count - 1]
        }
        while let choice = script.popLast() {
            if choice + 1 < forks[script.count] {
                script.append(choice + 1)
                break
            }
        }
        isDone = script.isEmpty
        return SimulatedDisk(state: found)
    }

    private func wreck(_ choose: (_ options: Int) -> Int) -> SimulatedDisk.State {
        var found = state
        for (name, files) in state.history.sorted(by: { $0.key < $1.key }) {
            let options = Self.distinct(files)
            found.entries[name] = options[choose(options.count)]
        }
        for file in Set(found.entries.values).sorted() {
            let options = Self.contents(old: state.durable[file] ?? [], new: state.volatile[file] ?? [])
            found.durable[file] = options[choose(options.count)]
        }
        found.volatile = found.durable
        found.history = [:]
        found.locks = []
        found.steps = []
        return found
    }

    private static func contents(old: [UInt8], new: [UInt8]) -> [[UInt8]] {
        if old == new { return [new] }
        let half = new.count / 2
        let zeros = [UInt8](repeating: 0, count: new.count)
        return distinct(
            [
                old, new, Array(new.prefix(half)), Array(new.dropLast()), zeros,
                Array(zeros.prefix(half) + new.dropFirst(half)),
            ])
    }

    private static func distinct<Element: Hashable>(_ elements: [Element]) -> [Element] {
        var seen: Set<Element> = []
        return elements.filter { seen.insert($0).inserted }
    }
}

extension SimulatedDisk.State {
    /// Lets `name` stand for `file`, or for nothing.
    mutating func enter(_ name: String, _ file: Int?) {
        history[name, default: [entries[name]]].append(file)
        entries[name] = file
    }
}
