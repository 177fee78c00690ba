import AssentCore
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine

/// Where a transaction stands, and what became of its request once it was taken.
enum TransactionPosition: String, CaseIterable, Sendable {
    case created, inProgress, completed, declined, expired, taken, forwarded, answered, notForwarded, unknown

    init(_ record: TransactionRecord) {
        self =
            switch record.state {
            case .created: .created
            case .inProgress: .inProgress
            case .completed: .completed
            case .declined: .declined
            case .expired: .expired
            case .taken: Self(record.outcome ?? .taken)
            }
    }

    private init(_ outcome: UpstreamOutcome) {
        self =
            switch outcome {
            case .taken: .taken
            case .forwarded: .forwarded
            case .notForwarded: .notForwarded
            case .answered: .answered
            case .unknown: .unknown
            }
    }
}

/// A statement that moves transactions, as a row of `docs/enforcement.md` has it.
struct MoveRow: Sendable, CustomTestStringConvertible {
    typealias Step = @Sendable (_ fixture: TransactionFixture, _ id: String) async throws -> Void

    /// The cells of the page: statement, from, to.
    let cells: [String]

    /// Where each position leads; what is not named stays where it is.
    let moves: [TransactionPosition: TransactionPosition]

    /// What is written into the audit log with each move, and not without one; `nil` where nothing is, or a refusal.
    let event: AuditEvent?

    /// Who has asked for the transactions.
    let maker: TransactionMaker

    /// For how long they have been where they are, in seconds.
    let age: TimeInterval

    let step: Step

    var testDescription: String { cells.joined(separator: " | ") }

    init(
        _ cells: [String], _ moves: [TransactionPosition: TransactionPosition], _ event: AuditEvent?,
        maker: TransactionMaker = .gateway, after age: TimeInterval = 0, _ step: @escaping Step
    ) {
        (self.cells, self.moves, self.event) = (cells, moves, event)
        (self.maker, self.age, self.step) = (maker, age, step)
    }

    private static let group = TransactionMaker.group("edge")

    private static func approval(_ id: String) -> PendingApproval {
        PendingApproval(
            id: id, journey: "Confirm", method: nil, resource: "", contentType: nil, bodySHA256: nil, display: [],
            expiresAt: 0)
    }

    private static func conclude(_ outcome: UpstreamOutcome) -> Step {
        return { fixture, id in try await fixture.transactions.recordOutcome(id: id, outcome) }
    }

    private static let housekeep: Step = { fixture, _ in _ = try await fixture.transactions.recordLostOutcomes() }

    private static let known = ["outcome", "taken, forwarded or unknown", "answered, or not forwarded"]
    private static let lost: [TransactionPosition: TransactionPosition] = [
        .forwarded: .unknown, .taken: .notForwarded,
    ]

    static let rows: [MoveRow] = [
        MoveRow(["begin the journey", "created", "in progress"], [.created: .inProgress], .transactionStart) {
            _ = try? await $0.transactions.start(id: $1, session: $0.ana)
        },
        MoveRow(["finish the journey", "in progress", "completed"], [.inProgress: .completed], .transactionComplete) {
            _ = try? await $0.database.run($0.transactions.completion(of: approval($1), session: $0.ana))
        },
        MoveRow(
            ["decline", "created or in progress", "declined"], [.created: .declined, .inProgress: .declined],
            .transactionDecline
        ) {
            _ = try await $0.transactions.decline(id: $1, session: $0.ana)
        },
        MoveRow(
            ["come too late", "created, in progress or completed", "expired"],
            [.created: .expired, .inProgress: .expired, .completed: .expired], nil, after: 180
        ) {
            _ = try await $0.transactions.take(id: $1, binding: try $0.binding())
        },
        MoveRow(["take", "completed", "taken"], [.completed: .taken], .transactionTake) {
            _ = try await $0.transactions.take(id: $1, binding: try $0.binding())
        },
        MoveRow(
            ["take and forwarding", "completed", "forwarded"], [.completed: .forwarded], .transactionTake,
            maker: group
        ) {
            _ = try await $0.transactions.take(
                id: $1, binding: try $0.binding(maker: group),
                by: TransactionAttempt("this-attempt-\($1)", client: "edge", question: [1]))
        },
        MoveRow(["forwarding", "taken", "forwarded"], [.taken: .forwarded], nil) {
            _ = try await $0.transactions.recordForwarding(id: $1)
        },
        MoveRow(
            known, [.taken: .answered, .forwarded: .answered, .unknown: .answered], .transactionOutcome,
            conclude(.answered(status: 201))),
        MoveRow(
            known, [.taken: .notForwarded, .forwarded: .notForwarded, .unknown: .notForwarded], .transactionOutcome,
            conclude(.notForwarded)),
        MoveRow(
            ["outcome", "taken or forwarded", "unknown"], [.taken: .unknown, .forwarded: .unknown],
            .transactionOutcome, conclude(.unknown)),
        MoveRow(
            ["housekeeping", "forwarded for ten minutes", "unknown"], lost, .transactionOutcome, after: 600, housekeep),
        MoveRow(
            ["housekeeping", "taken by the gateway ten minutes ago, and not forwarded", "not forwarded"], lost,
            .transactionOutcome, after: 600, housekeep),
    ]
}

@Suite("What each statement does to transactions, as docs/enforcement.md says it")
struct TransactionMoveTests {
    @Test("It moves what its row says and nothing else, and writes one record with each move", arguments: MoveRow.rows)
    func row(_ row: MoveRow) async throws {
        let fixture = try await TransactionFixture()
        var rest: [(position: TransactionPosition, id: String)] = []
        for position in TransactionPosition.allCases {
            // A gateway elsewhere takes and forwards at once.
            if position == .taken, row.maker != .gateway { continue }
            rest.append((position, try await fixture.transaction(at: position, of: row.maker)))
        }
        fixture.clock.advance(by: row.age)
        let noted = try await notes(rest.map { $0.id }, row.event, fixture)
        for (_, id) in rest { try await row.step(fixture, id) }
        let after = try await notes(rest.map { $0.id }, row.event, fixture)
        for (index, (position, id)) in rest.enumerated() {
            let next = row.moves[position]
            #expect(try await fixture.position(of: id) == next ?? position, "\(position)")
            #expect(after[index] - noted[index] == (next == nil || row.event == nil ? 0 : 1), "\(position)")
        }
    }

    @Test("Once a statement has moved a transaction, the same statement moves it no further", arguments: MoveRow.rows)
    func again(_ row: MoveRow) async throws {
        let fixture = try await TransactionFixture()
        for (position, next) in row.moves {
            let id = try await fixture.transaction(at: position, of: row.maker)
            let noted = try await notes([id], row.event, fixture)
            fixture.clock.advance(by: row.age)
            for _ in 1...2 {
                try await row.step(fixture, id)
                #expect(try await fixture.position(of: id) == next, "\(position)")
            }
            let after = try await notes([id], row.event, fixture)
            #expect(after == noted.map { $0 + (row.event == nil ? 0 : 1) }, "\(position)")
            fixture.clock.advance(by: -row.age)
        }
    }

    @Test("Where its record cannot be written a statement moves nothing", arguments: MoveRow.rows)
    func unrecorded(_ row: MoveRow) async throws {
        // Forwarding writes none, and what comes too late is refused by the time itself.
        guard row.event != nil else { return }
        let fixture = try await TransactionFixture()
        var rest: [(position: TransactionPosition, id: String)] = []
        for position in row.moves.keys {
            rest.append((position, try await fixture.transaction(at: position, of: row.maker)))
        }
        fixture.clock.advance(by: row.age)
        try await RefusedWrites.begin("INSERT ON audit", in: fixture.database)
        for (position, id) in rest {
            try? await row.step(fixture, id)
            #expect(try await fixture.position(of: id) == position)
        }
    }

    /// How many records there are of an event that was carried out.
    private func notes(
        _ ids: [String], _ event: AuditEvent?, _ fixture: TransactionFixture
    ) async throws -> [Int] {
        var counts: [Int] = []
        for id in ids {
            let records = try await AuditLog(fixture.context).records(transactionID: id)
            counts.append(records.count { $0.event == event && $0.outcome != .refused })
        }
        return counts
    }

    @Test("docs/enforcement.md has these rows, after that of the making")
    func page() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/enforcement.md"), encoding: .utf8)
        let start = try #require(page.range(of: "<!-- states -->\n")).upperBound
        let end = try #require(page.range(of: "<!-- end of states -->\n")).lowerBound
        let lines = page[start..<end].split(separator: "\n").dropFirst(2)
        let cells = lines.map { line in
            Array(line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }.prefix(3))
        }
        var rows = [["make", "–", "created"]]
        for row in MoveRow.rows where rows.last != row.cells { rows.append(row.cells) }
        #expect(cells == rows)
    }
}

extension TransactionFixture {
    /// A transaction that has come so far, by the statements that bring one there.
    fileprivate func transaction(at position: TransactionPosition, of maker: TransactionMaker) async throws -> String {
        let binding = try self.binding(maker: maker)
        switch position {
        case .created: return try await create(binding).id
        case .completed: return try await approved(binding)
        case .inProgress, .declined, .expired:
            let id = try await create(binding).id
            _ = try await transactions.start(id: id, session: ana)
            if position == .declined { #expect(try await transactions.decline(id: id, session: ana)) }
            if position == .expired { try await force(id, .expired) }
            return id
        case .taken, .forwarded, .answered, .notForwarded, .unknown:
            let id = try await approved(binding)
            let attempt = TransactionAttempt("first-attempt-\(id)", client: "edge", question: [0])
            let isElsewhere = maker != .gateway
            let result = try await transactions.take(id: id, binding: binding, by: isElsewhere ? attempt : nil)
            #expect(result.isTaken)
            if position == .taken { return id }
            if !isElsewhere { #expect(try await transactions.recordForwarding(id: id)) }
            switch position {
            case .answered: try await transactions.recordOutcome(id: id, .answered(status: 200))
            case .notForwarded: try await transactions.recordOutcome(id: id, .notForwarded)
            case .unknown: try await transactions.recordOutcome(id: id, .unknown)
            default: break
            }
            return id
        }
    }

    fileprivate func position(of id: String) async throws -> TransactionPosition? {
        try await database.run(.read("SELECT * FROM transactions WHERE id = \(id)")).first
            .map { try TransactionPosition(TransactionRecord($0)) }
    }
}
