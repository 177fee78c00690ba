#if PostgreSQL && os(Linux)
import Testing

@testable import AssentStore

@Suite("PostgreSQL: what a node must not believe")
struct ServerBeliefTests {
    private func generation(_ number: Int64, _ token: String, timeline: Int = 1, isRestored: Bool = false)
        -> DatabaseGeneration
    {
        DatabaseGeneration(
            number: number, token: token, system: "s", timeline: "\(timeline)", isRestored: isRestored)
    }

    private func server(
        _ startedAt: Int64, system: String = "s", timeline: Int = 1, _ generations: [DatabaseGeneration],
        _ marks: [String: Int64] = [:]
    ) -> ServerSighting {
        ServerSighting(
            incarnation: .init(system: system, timeline: "\(timeline)", startedAt: startedAt),
            generations: generations, marks: marks)
    }

    @Test("A backup that was adopted once does not make every later copy acceptable")
    func adoptedBefore() {
        // The node has used the restored generation, and written in it.
        let history = [generation(1, "a"), generation(2, "b", isRestored: true)]
        let memory = NodeMemory(generation: 2, token: "b", mark: 5)
        #expect(memory.judge(server(1, history, ["n": 5]), node: "n") == .accepted)
        #expect(memory.judge(server(1, history, ["n": 4]), node: "n") == .copy)
        #expect(memory.judge(server(1, history), node: "n") == .copy)
        let promoted = history + [generation(3, "c", timeline: 2)]
        #expect(memory.judge(server(1, timeline: 2, promoted, ["n": 4]), node: "n") == .lossy)
        // An earlier one that was restored says nothing either.
        let earlier = [generation(1, "a", isRestored: true), generation(2, "b")]
        #expect(memory.judge(server(1, earlier, ["n": 4]), node: "n") == .copy)
    }

    @Test("A node goes by its own mark: what others have written says nothing about it")
    func otherMarks() throws {
        let memory = NodeMemory(generation: 1, token: "a", mark: 5)
        let others = server(1, [generation(1, "a")], ["m": 9, "N": 9, "": 9])
        #expect(memory.judge(others, node: "n") == .copy)
        let belief = ServerBelief(node: "n", requiresStandby: true)
        #expect(try belief.memory(of: others) == NodeMemory(generation: 1, token: "a", mark: 0, owner: "n"))
    }

    @Test("A mark that another id has written is looked for under that one: a copied directory lets no backup in")
    func copiedMark() throws {
        let history = [generation(1, "a")]
        let memory = NodeMemory(generation: 1, token: "a", mark: 5, owner: "m")
        #expect(NodeMemory(text: memory.text) == memory)
        let right = server(1, history, ["m": 5])
        #expect(memory.judge(right, node: "n") == .accepted)
        #expect(memory.judge(server(1, history, ["m": 4, "n": 9]), node: "n") == .copy)
        #expect(memory.judge(server(1, history), node: "n") == .copy)
        let restored = history + [generation(2, "b", isRestored: true)]
        #expect(memory.judge(server(1, restored, ["m": 4]), node: "n") == .accepted)
        // From then on the node goes by its own.
        var belief = ServerBelief(node: "n", requiresStandby: true, memory: memory)
        belief.use(right.incarnation, remembering: try belief.memory(of: right))
        #expect(belief.memory == NodeMemory(generation: 1, token: "a", mark: 0, owner: "n"))
        for wrong in ["\"\"", "7", "null"] {
            let text = memory.text.replacing("\"m\"", with: wrong)
            #expect(NodeMemory(text: text) == nil, "\(text)")
        }
    }

    @Test("A number is one generation only with its token, and a token only with its number")
    func tokens() {
        let memory = NodeMemory(generation: 2, token: "b", mark: 0)
        for history in [
            [generation(1, "b"), generation(2, "x")], [generation(1, "a"), generation(3, "b")], [generation(2, "B")],
        ] { #expect(memory.judge(server(1, history, ["n": 9]), node: "n") == .otherHistory) }
    }

    @Test("A promotion, and another server with the same timeline, need a generation of their own")
    func lacking() throws {
        let history = [generation(1, "a")]
        #expect(!server(1, history).lacksGeneration)
        #expect(server(1, timeline: 2, history).lacksGeneration)
        #expect(server(1, system: "t", history).lacksGeneration)
        #expect(server(1, []).lacksGeneration)
        #expect(server(1, [generation(1, "a"), generation(2, "b", timeline: 2)]).lacksGeneration)
        let belief = ServerBelief(node: "n", requiresStandby: false)
        for forgetful in [server(1, timeline: 2, history), server(1, system: "t", history), server(1, [])] {
            #expect(throws: ServerRefusal.forgetful) { try belief.memory(of: forgetful) }
        }
    }

    @Test("A server that is used and has come to lack a generation, or to have a newer one, is judged anew")
    func anew() throws {
        var belief = ServerBelief(node: "n", requiresStandby: false)
        let promoted = server(1, timeline: 2, [generation(1, "a")], ["n": 5])
        let memory = NodeMemory(generation: 1, token: "a", mark: 5)
        belief.use(promoted.incarnation, remembering: memory)
        #expect(try !belief.isKnown(promoted, remembering: memory))
        let begun = server(1, timeline: 2, [generation(1, "a"), generation(2, "b", timeline: 2)], ["n": 5])
        #expect(try !belief.isKnown(begun, remembering: memory))
        let remembered = NodeMemory(generation: 2, token: "b", mark: 5)
        #expect(try belief.isKnown(begun, remembering: remembered))
        #expect(try !belief.isKnown(begun, remembering: nil))
        belief.forgetCurrent()
        #expect(belief.current == nil)
        #expect(try !belief.isKnown(begun, remembering: remembered))
    }

    @Test("What is lost on the server that is used is refused where nothing may be lost, and else judged anew")
    func lossBeneath() throws {
        let memory = NodeMemory(generation: 1, token: "a", mark: 5)
        let lossy = server(1, timeline: 2, [generation(1, "a"), generation(2, "b", timeline: 2)], ["n": 4])
        for requiresStandby in [true, false] {
            var belief = ServerBelief(node: "n", requiresStandby: requiresStandby)
            belief.use(lossy.incarnation, remembering: memory)
            if requiresStandby {
                #expect(throws: ServerRefusal.lossy) { try belief.isKnown(lossy, remembering: memory) }
            } else {
                #expect(try !belief.isKnown(lossy, remembering: memory))
            }
        }
    }

    @Test("A mark counts from the server that is used, in the generation that is remembered, and from nobody else")
    func marks() {
        var belief = ServerBelief(node: "n", requiresStandby: false)
        let (one, two) = (server(1, []).incarnation, server(2, []).incarnation)
        #expect(belief.acknowledge(mark: 6, of: 1, by: nil) == nil)
        belief.remember(NodeMemory(generation: 1, token: "a", mark: 5))
        #expect(belief.acknowledge(mark: 6, of: 1, by: nil) == nil, "no server is used")
        #expect(belief.acknowledge(mark: 6, of: 1, by: one) == nil)
        belief.use(two, remembering: nil)
        #expect(belief.memory?.mark == 5)
        #expect(belief.acknowledge(mark: 6, of: 1, by: one) == nil)
        #expect(belief.acknowledge(mark: 6, of: 1, by: nil) == nil)
        #expect(belief.acknowledge(mark: 6, of: 2, by: two) == nil)
        #expect(belief.memory?.mark == 5)
        #expect(belief.acknowledge(mark: 6, of: 1, by: two) == NodeMemory(generation: 1, token: "a", mark: 6))
    }

    @Test(
        "A conflict lasts until one server is used, or is found to have everything; a look that finds nobody ends none")
    func conflicts() {
        let one = server(1, []).incarnation
        var belief = ServerBelief(node: "n", requiresStandby: false)
        belief.use(one, remembering: nil)
        belief.see(.conflict([0, 1]), chosen: nil)
        belief.see(.nobody, chosen: nil)
        #expect(belief.conflict == [0, 1] && belief.current == one)
        belief.use(one, remembering: nil)
        #expect(belief.conflict.isEmpty)
        belief.see(.host(0, behind: [1, 2]), chosen: nil)
        #expect(belief.current == one && belief.behind == 2)
    }

    @Test("Whatever one server lacks of the other's nodes, neither contains the other")
    func relations() {
        let history = [generation(1, "a")]
        func relation(_ first: ServerSighting, _ second: ServerSighting) -> ServerRelation {
            let forth = ServerRelation(first, second)
            let back = ServerRelation(second, first)
            let opposite: [ServerRelation: ServerRelation] = [
                .same: .same, .contains: .isContained, .isContained: .contains, .neither: .neither,
            ]
            #expect(opposite[forth] == back)
            return forth
        }
        #expect(relation(server(1, history, ["n": 2, "m": 2]), server(2, history, ["n": 1, "m": 3])) == .neither)
        #expect(relation(server(1, history, ["n": 2]), server(2, history, ["n": 1, "m": 0])) == .neither)
        #expect(relation(server(1, history, ["n": 2, "m": 0]), server(2, history, ["n": 2])) == .contains)
        // A longer history contains a shorter one only if it is a part of it, and that server was not promoted itself.
        let longer = [generation(1, "x"), generation(2, "b", timeline: 2)]
        #expect(relation(server(1, timeline: 2, longer), server(2, history)) == .neither)
        let later = history + [generation(2, "b", timeline: 2)]
        #expect(relation(server(1, timeline: 2, later), server(2, timeline: 3, history)) == .neither)
        #expect(relation(server(1, timeline: 2, later), server(2, history, ["n": 99])) == .contains)
        // One run of one server, whatever was read from it.
        #expect(ServerRelation(server(1, history), server(1, [])) == .same)
        for other in [server(1, system: "t", history), server(1, timeline: 2, history), server(2, history)] {
            #expect(ServerRelation(server(1, history), other) != .same)
        }
    }

    @Test("Only one statement that a crash may take is written without evidence of its commit")
    func kinds() {
        let read = SQLStatement.read("SELECT 1 AS n")
        let write = SQLStatement("DELETE FROM notes")
        let unlogged = SQLStatement.unlogged("DELETE FROM spent_proofs RETURNING id")
        let table: [([SQLStatement], PostgreSQLWork.Kind, Bool)] = [
            ([read], .read, false), ([read, read], .snapshot, false), ([write], .write, true),
            ([read, write], .write, true), ([write, read], .write, true), ([unlogged], .unlogged, true),
            ([unlogged, write], .write, true), ([write, unlogged], .write, true), ([unlogged, unlogged], .write, true),
            ([read, unlogged], .write, true), ([SQLStatement("CREATE TABLE a (id TEXT)")], .definition, true),
            ([write, SQLStatement("CREATE TABLE a (id TEXT)")], .definition, true),
        ]
        for (index, (statements, kind, isWriting)) in table.enumerated() {
            let work = PostgreSQLWork(statements)
            #expect(work.kind == kind && work.isWriting == isWriting, "\(index)")
        }
    }
}
#endif
