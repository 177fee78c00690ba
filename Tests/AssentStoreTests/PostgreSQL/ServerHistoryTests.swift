#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import TestSupport
import Testing

@testable import AssentStore

@Suite("PostgreSQL: which server a node believes")
struct ServerHistoryTests {
    private func generation(_ number: Int64, _ token: String, timeline: Int = 1, isRestored: Bool = false)
        -> DatabaseGeneration
    {
        DatabaseGeneration(
            number: number, token: token, system: "s", timeline: "\(timeline)", isRestored: isRestored)
    }

    /// A server on a timeline, with the generations of its history and the marks of nodes.
    private func server(
        _ startedAt: Int64, timeline: Int = 1, _ generations: [DatabaseGeneration], _ marks: [String: Int64] = [:],
        hasTables: Bool = true
    ) -> ServerSighting {
        ServerSighting(
            incarnation: .init(system: "s", timeline: "\(timeline)", startedAt: startedAt), generations: generations,
            marks: marks, hasTables: hasTables)
    }

    @Test("One server under two names is one server")
    func same() {
        let one = server(1, [generation(1, "a")], ["n": 4])
        let two = server(1, [generation(1, "a")], ["n": 5])
        #expect(ServerRelation(one, two) == .same)
        #expect(ServerChoice([(0, one), (1, two)]) == .host(0, behind: []))
    }

    @Test("The old primary is behind the server that took over, as soon as a node has noticed that")
    func oldPrimary() {
        let old = server(1, [generation(1, "a")], ["n": 9])
        let new = server(2, timeline: 2, [generation(1, "a"), generation(2, "b", timeline: 2)], ["n": 7])
        #expect(ServerRelation(new, old) == .contains)
        #expect(ServerRelation(old, new) == .isContained)
        #expect(ServerChoice([(0, old), (1, new)]) == .host(1, behind: [0]))
    }

    @Test("Before a node has noticed, the one that took over is the right one only if it has every node's mark")
    func unnoticed() {
        let old = server(1, [generation(1, "a")], ["n": 7, "m": 1])
        let new = server(2, timeline: 2, [generation(1, "a")], ["n": 7, "m": 1])
        #expect(ServerRelation(new, old) == .contains)
        let lacking = server(2, timeline: 2, [generation(1, "a")], ["n": 7])
        #expect(ServerRelation(lacking, old) == .neither)
        #expect(ServerChoice([(0, old), (1, lacking)]) == .conflict([0, 1]))
    }

    @Test("Two that were promoted from one went different ways, whether nodes have noticed or not")
    func twoPromoted() {
        let first = server(1, timeline: 2, [generation(1, "a")], ["n": 9])
        let second = server(2, timeline: 2, [generation(1, "a")], ["n": 8])
        #expect(ServerRelation(first, second) == .neither)
        let noticed = server(1, timeline: 2, [generation(1, "a"), generation(2, "b", timeline: 2)], ["n": 9])
        #expect(ServerRelation(noticed, second) == .neither)
        let both = server(2, timeline: 2, [generation(1, "a"), generation(2, "c", timeline: 2)], ["n": 8])
        #expect(ServerRelation(noticed, both) == .neither)
    }

    @Test("A copy of the disk is told by the mark that was written since; an equal one is a conflict")
    func copy() {
        let right = server(1, [generation(1, "a")], ["n": 9])
        let copy = server(2, [generation(1, "a")], ["n": 8])
        #expect(ServerChoice([(0, copy), (1, right)]) == .host(1, behind: [0]))
        #expect(ServerChoice([(0, right), (1, server(3, [generation(1, "a")], ["n": 9]))]) == .conflict([0, 1]))
        // Another node uses the copy.
        let used = server(2, [generation(1, "a")], ["n": 8, "m": 1])
        #expect(ServerChoice([(0, right), (1, used)]) == .conflict([0, 1]))
    }

    @Test("A server without a history is behind each that has one; two without are a conflict")
    func empty() {
        let right = server(1, [generation(1, "a")])
        #expect(ServerChoice([(0, server(2, [])), (1, right)]) == .host(1, behind: [0]))
        #expect(ServerChoice([(0, server(2, [])), (1, server(3, []))]) == .conflict([0, 1]))
        #expect(ServerChoice([]) == .nobody)
    }

    @Test("Of three servers that can be written to, the one that has everything is chosen, in any order")
    func three() {
        let first = server(1, [generation(1, "a")], ["n": 9])
        let second = server(2, timeline: 2, [generation(1, "a"), generation(2, "b", timeline: 2)], ["n": 3])
        let third = server(
            3, timeline: 3, [generation(1, "a"), generation(2, "b", timeline: 2), generation(3, "c", timeline: 3)])
        for order in [[first, second, third], [third, first, second], [second, third, first]] {
            let choice = ServerChoice(order.enumerated().map { ($0.offset, $0.element) })
            guard case .host(let index, let behind) = choice else {
                Issue.record("\(choice)")
                continue
            }
            #expect(order[index] == third)
            #expect(behind.count == 2)
        }
    }

    @Test("A node judges a server by the generation that it has used and by its own mark")
    func judgement() {
        let memory = NodeMemory(generation: 2, token: "b", mark: 5)
        let history = [generation(1, "a"), generation(2, "b", timeline: 2)]
        func judge(timeline: Int = 2, _ generations: [DatabaseGeneration], mark: Int64?) -> NodeMemory.Judgement {
            memory.judge(server(1, timeline: timeline, generations, mark.map { ["n": $0] } ?? [:]), node: "n")
        }
        #expect(judge(history, mark: 5) == .accepted)
        #expect(judge(history, mark: 6) == .accepted)
        #expect(judge(history, mark: 4) == .copy)
        #expect(judge(history, mark: nil) == .copy)
        #expect(judge([generation(1, "a")], mark: 9) == .otherHistory)
        #expect(judge([], mark: 9) == .otherHistory)
        #expect(judge([generation(1, "a"), generation(2, "x", timeline: 2)], mark: 9) == .otherHistory)
        // It was promoted, and no node has noticed.
        #expect(judge(timeline: 3, history, mark: 5) == .accepted)
        #expect(judge(timeline: 3, history, mark: 4) == .lossy)
        let later = history + [generation(3, "c", timeline: 3)]
        #expect(judge(timeline: 3, later, mark: 5) == .accepted)
        #expect(judge(timeline: 3, later, mark: 4) == .lossy)
        let restored = history + [generation(3, "c", timeline: 2, isRestored: true)]
        #expect(judge(restored, mark: 1) == .accepted)
    }

    @Test("The server that is used is compared again with each connection: a restore beneath the node is seen")
    func known() throws {
        var belief = ServerBelief(node: "n", requiresStandby: false)
        let empty = server(1, [], hasTables: false)
        #expect(try !belief.isKnown(empty, remembering: nil))
        belief.use(empty.incarnation, remembering: nil)
        #expect(try belief.isKnown(empty, remembering: nil))
        #expect(try !belief.isKnown(server(1, []), remembering: nil))
        let right = server(1, [generation(1, "a")], ["n": 5])
        belief.use(right.incarnation, remembering: try belief.memory(of: right))
        let memory = belief.memory
        #expect(memory == NodeMemory(generation: 1, token: "a", mark: 5, owner: "n"))
        #expect(try belief.isKnown(right, remembering: memory))
        #expect(try belief.isKnown(server(1, [generation(1, "a")], ["n": 6]), remembering: memory))
        #expect(throws: ServerRefusal.copy) { try belief.isKnown(server(1, [generation(1, "a")]), remembering: memory) }
        for other in [[], [generation(1, "b")]] {
            #expect(throws: ServerRefusal.otherHistory) {
                try belief.isKnown(server(1, other, ["n": 5]), remembering: memory)
            }
        }
        // What another node has restored, or another run of the server, has to be looked at.
        let restored = server(1, [generation(1, "a"), generation(2, "b", isRestored: true)])
        #expect(try !belief.isKnown(restored, remembering: memory))
        #expect(try !belief.isKnown(server(2, [generation(1, "a")], ["n": 5]), remembering: memory))
    }

    @Test("A server that is new to a node must have what it has seen and what all others have, and say what it is")
    func eligible() throws {
        let history = [generation(1, "a")]
        let memory = NodeMemory(generation: 1, token: "a", mark: 5)
        let right = server(2, history, ["n": 5])
        let lossy = server(2, history + [generation(2, "b")], ["n": 4])
        for requiresStandby in [false, true] {
            let belief = ServerBelief(node: "n", requiresStandby: requiresStandby, memory: memory)
            func judge(
                _ sighting: ServerSighting, _ choice: ServerChoice = .nobody, _ chosen: ServerSighting? = nil
            ) throws(ServerRefusal) -> Bool {
                try belief.judge(sighting, among: choice, chosen: chosen?.incarnation)
            }
            #expect(try !judge(right))
            #expect(try !judge(right, .host(0, behind: [1]), right))
            #expect(throws: ServerRefusal.conflict([0, 1])) { try judge(right, .conflict([0, 1])) }
            #expect(throws: ServerRefusal.behind) { try judge(right, .host(1, behind: [0]), server(3, history)) }
            #expect(throws: ServerRefusal.copy) { try judge(server(2, history)) }
            #expect(throws: ServerRefusal.otherHistory) { try judge(server(2, [generation(1, "b")])) }
            if requiresStandby {
                #expect(throws: ServerRefusal.lossy) { try judge(lossy) }
            } else {
                #expect(try judge(lossy))
            }
            #expect(throws: ServerRefusal.forgetful) { try belief.memory(of: server(2, timeline: 2, history)) }
        }
    }

    @Test("What a look at all servers finds changes what a node uses, and whether it writes")
    func seen() {
        var belief = ServerBelief(node: "n", requiresStandby: false)
        let (one, two) = (server(1, [generation(1, "a")]).incarnation, server(2, [generation(1, "a")]).incarnation)
        belief.use(one, remembering: NodeMemory(generation: 1, token: "a", mark: 5))
        belief.see(.host(0, behind: [1]), chosen: one)
        #expect(belief.current == one && belief.behind == 1)
        belief.see(.nobody, chosen: nil)
        #expect(belief.current == one && belief.conflict.isEmpty)
        belief.see(.conflict([0, 1]), chosen: nil)
        #expect(belief.conflict == [0, 1])
        belief.see(.host(0, behind: []), chosen: one)
        #expect(belief.conflict.isEmpty && belief.behind == 0)
        belief.see(.host(1, behind: [0]), chosen: two)
        #expect(belief.current == nil)
        #expect(belief.acknowledge(mark: 6, of: 1, by: one) == nil)
        belief.use(two, remembering: nil)
        #expect(belief.acknowledge(mark: 6, of: 2, by: two) == nil)
        #expect(belief.acknowledge(mark: 6, of: 1, by: two)?.mark == 6)
        #expect(belief.memory?.mark == 6)
    }

    @Test("What a node remembers survives its file; anything else there is refused, not forgotten")
    func file() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "memory-\(UUID().uuidString)").path
        let file = NodeMemoryFile(path: path)
        #expect(try file.read() == nil)
        #expect(try !file.remove())
        let memory = NodeMemory(generation: 3, token: "a token", mark: 17)
        try file.write(memory)
        #expect(try file.read() == memory)
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let text = try String(contentsOfFile: path, encoding: .utf8)
        for wrong in [
            "", "{}", String(text.dropLast(3)), text.replacing("17", with: "-17"), text.replacing("3", with: "0"),
            text.replacing("a token", with: ""), text + "x", String(repeating: " ", count: 5_000) + text,
        ] {
            try Data(wrong.utf8).write(to: URL(filePath: path))
            #expect(throws: StoreError(.unavailable, ""), "\(wrong)") { try file.read() }
        }
        #expect(try file.remove())
        #expect(try file.read() == nil)
        #expect(throws: StoreError(.unavailable, "")) { try NodeMemoryFile(path: "/proc/none/x").write(memory) }
    }

    @Test("Threads that write what a node remembers at once leave the newest, whole")
    func writers() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "memory-\(UUID().uuidString)").path
        let file = NodeMemoryFile(path: path)
        let writer = NodeMemoryWriter(file)
        let newest = Locked<Int64>(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    try await offPool {
                        for _ in 0..<25 {
                            try writer.alone { (file: NodeMemoryFile?) throws(StoreError) in
                                let mark = newest.withLock { newest -> Int64 in
                                    newest += 1
                                    return newest
                                }
                                try file?.write(NodeMemory(generation: 1, token: "a token", mark: mark))
                            }
                            _ = try file.read()
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try file.read() == NodeMemory(generation: 1, token: "a token", mark: 100))
        #expect(try file.remove())
        #expect(!FileManager.default.fileExists(atPath: path + ".new"))
    }

    @Test("A visible record is a commit only when a later commit is confirmed, and the server replicates if it must")
    func search() {
        for requiresStandby in [false, true] {
            let search = CommitSearch(requiresStandby: requiresStandby)
            #expect(search.start == .look)
            #expect(search.found(.open) == .look)
            #expect(search.found(.absent) == .end(.takenBack))
            #expect(search.found(.present(isReplicated: true)) == .fence)
            #expect(search.found(.present(isReplicated: false)) == (requiresStandby ? .end(.unknown) : .fence))
            #expect(search.fenced(isConfirmed: false) == .end(.unknown))
            #expect(search.fenced(isConfirmed: true) == .end(.committed))
            #expect(search.lost() == .look)
        }
    }
}
#endif
