import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine

/// Like ``SigningExplorationTests``, with devices that sign, and a verifier that judges what each history has left.
@Suite("One transaction to sign, two nodes, writes that fail, and what the evidence says")
struct SigningEvidenceExplorationTests {
    /// What happens over the second node while the first one approves.
    private enum Meanwhile: CaseIterable {
        case nothing
        case refused
        case refusedBlindlyElsewhere
        case approvedElsewhere
        case wrongNumber
        case canceled
        case expired
    }

    private struct History: CustomStringConvertible {
        /// What happens to the first node's writes: it counts the call, claims the number, decides, notes a refusal.
        let faults: [NodeDatabase.Fault]
        let meanwhile: Meanwhile
        /// Before which of these writes.
        let moment: Int

        var description: String { "\(faults), \(meanwhile) before \(moment)" }
    }

    /// Faults of one write each: what comes after a write that fails is not reached.
    private static let histories: [History] = {
        let faults = NodeDatabase.Fault.allCases
        let lists = (1...3).flatMap { write in
            faults.filter { $0 != .none }.map { Array(repeating: .none, count: write) + [$0] }
        }
        return ([[]] + lists).flatMap { faults in
            Meanwhile.allCases.flatMap { meanwhile in
                (meanwhile == .nothing ? [0] : [0, 1, 2]).map {
                    History(faults: faults, meanwhile: meanwhile, moment: $0)
                }
            }
        }
    }()

    /// A device of Ana's.
    private struct Party: Sendable {
        let device: TestDevice
        let container: TestDevice.Enrolled
        let pin: TestPIN?

        init(_ world: SigningWorld, hasPIN: Bool) async throws {
            if hasPIN {
                let enrolled = try await world.enrolledWithPIN()
                (device, container, pin) = (enrolled.device, enrolled.container, enrolled.pin)
            } else {
                (device, container) = try await world.enrolled()
                pin = nil
            }
        }

        func approval(_ document: SignedMessage<TransactionDocument>, number: String) async throws -> Choice {
            let opened = try await pin?.open("2580")
            if let opened { device.keys.withLock { $0["payments"] = opened.key } }
            return try await choice(
                device.decision(document, status: "accept", number: number, unl: opened?.unl), label: "payments",
                .approved, document)
        }

        func choice(
            _ decision: Decision, label: String?, _ state: SigningTransactionRecord.State,
            _ document: SignedMessage<TransactionDocument>? = nil
        ) async throws -> Choice {
            let key = label.flatMap { label in device.keys.withLock { $0[label] } } ?? device.deviceKey
            let kid = try ProtocolKey(key).thumbprint
            let body = try await device.signed(decision, label: label)
            guard let document = document?.content, let status = document.status(named: decision.status) else {
                return Choice(
                    party: self, body: body, state: state,
                    finding: .refusedBlindly(txn: decision.txn, kid: kid, status: decision.status))
            }
            return Choice(
                party: self, body: body, state: state,
                finding: .decided(
                    txn: decision.txn, kid: kid, status: status.name, label: status.label,
                    texts: document.displayed(status: status, match: decision.match)))
        }
    }

    /// A decision that somebody sends, and what is true if it is the one that counts.
    private struct Choice: Sendable {
        let party: Party
        let body: DecideBody
        var state: SigningTransactionRecord.State
        let finding: EvidenceFinding

        var dh: String { SigningHash.decision(body.decision).text }

        /// Sends it to a node. Returns the receipt; `nil` when there was no answer, or a refusal.
        func send(to node: SigningProvider) async -> String? {
            let (device, did) = (party.device, party.container.did)
            do {
                let sealed = try await device.sealed(body.encoded(), sender: did.text)
                let proof = try await device.proof(did, path: DeviceCall.decide.rawValue, body: sealed)
                return try await node.door.answer(
                    .decide, proof: proof, body: Array(sealed.utf8), address: "192.0.2.1")
            } catch {
                return nil
            }
        }
    }

    /// The worlds of all histories.
    private struct Scene {
        let world: SigningWorld
        let mine: Party
        let other: Party
        let identity: KeyThumbprint

        init(hasPIN: Bool) async throws {
            world = hasPIN ? try await SigningWorld.withPIN() : try await SigningWorld()
            mine = try await Party(world, hasPIN: hasPIN)
            other = try await Party(world, hasPIN: hasPIN)
            identity = try await mine.device.trust().identity.thumbprint
        }
    }

    @Test(
        "It is decided once at most; the bundle verifies and says what was decided by whom over which text, or is none",
        arguments: [false, true])
    func explore(hasPIN: Bool) async throws {
        let scene = try await Scene(hasPIN: hasPIN)
        var ends: [String: Int] = [:]
        // Each is tried on the embedded database.
        for index in stride(from: 0, to: Self.histories.count, by: TestDatabase.isPostgreSQL && !Soak.isOn ? 3 : 1) {
            ends[try await run(Self.histories[index], scene), default: 0] += 1
        }
        // Each end was met, so that none of them was looked at in vain.
        let expected: Set = ["APPROVED", "APPROVED elsewhere", "DENIED", "CANCELED", "EXPIRED", "FAILED"]
        #expect(Set(ends.keys) == expected, "\(ends)")
    }

    private func run(_ history: History, _ scene: Scene) async throws -> String {
        let (world, mine) = (scene.world, scene.mine)
        // What is open expires, and calls are not too many.
        world.base.clock.advance(by: 200)
        var wish = world.wish("numbered")
        wish.clientID = "shop-\(wish.idempotencyKey)"
        let client = wish.clientID
        let made = try await world.provider.parties.create(wish)
        let txn = made.txn
        let number = try #require(made.matchNumber)
        let document = try await mine.device.fetch(txn, mine.container)
        let approval = try await mine.approval(document, number: number)
        let second = try await meanwhile(history.meanwhile, scene, txn, document, number)
        let secondReply = Locked<String?>(nil)
        let isCanceled = Locked(false)
        let database = NodeDatabase(world.base.database, history.faults) { write in
            guard write == history.moment else { return }
            switch history.meanwhile {
            case .canceled:
                let done: Void? = try? await world.provider.parties.cancel(txn.text, client: client)
                isCanceled.withLock { $0 = done != nil }
            case .expired: world.base.clock.advance(by: 181)
            default:
                let reply = await second?.send(to: world.provider)
                secondReply.withLock { $0 = reply }
            }
        }
        let context = try TransactionFixture.context(database, clock: world.base.clock)
        let first = SigningProvider(context, settings: world.provider.settings)
        let replies = [
            (approval, await approval.send(to: first)),
            // The device repeats the same bytes at the other node.
            (approval, await approval.send(to: world.provider)),
        ]
        let stored = try await world.base.database.run(
            .read("SELECT dh, receipt FROM signing_decisions WHERE txn = \(txn.text)"))
        let notes = try await world.base.audited(.signingDecide, txn.text).filter { $0 == "success -" }
        #expect(stored.count <= 1 && notes.count == stored.count, "\(history): \(stored.count) \(notes.count)")
        let receipt = try stored.first?.text("receipt")
        let dh = try stored.first?.text("dh")
        let all = replies + (second.map { [($0, secondReply.withLock { $0 })] } ?? [])
        for (choice, reply) in all where reply != nil {
            #expect(reply == receipt && choice.dh == dh, "\(history): a receipt that does not count")
        }
        #expect(dh != approval.dh || replies[1].1 == receipt, "\(history): a repetition does not find the receipt")
        let decided = [approval, second].compactMap(\.self).first { $0.dh == dh }
        try await judge(decided, txn, client, receipt, scene, "\(history)")
        let state = try await world.provider.parties.view(txn.text, client: client).state
        // Who has been told that it is canceled is not told otherwise.
        #expect((state == .canceled) == isCanceled.withLock { $0 }, "\(history): \(state)")
        return state.rawValue + (decided?.state == .approved && dh != approval.dh ? " elsewhere" : "")
    }

    /// What comes over the second node; `nil` for what is not a decision.
    private func meanwhile(
        _ meanwhile: Meanwhile, _ scene: Scene, _ txn: SigningID, _ document: SignedMessage<TransactionDocument>,
        _ number: String
    ) async throws -> Choice? {
        let (mine, other) = (scene.mine, scene.other)
        switch meanwhile {
        case .nothing, .canceled, .expired: return nil
        case .refused:
            return try await mine.choice(
                mine.device.decision(document, status: "deny"), label: nil, .denied, document)
        case .refusedBlindlyElsewhere:
            return try await other.choice(other.device.blind(txn, other.container), label: nil, .denied)
        case .approvedElsewhere:
            return try await other.approval(try await other.device.fetch(txn, other.container), number: number)
        case .wrongNumber:
            var choice = try await mine.approval(document, number: number == "00" ? "01" : "00")
            choice.state = .failed
            return choice
        }
    }

    /// Whether the evidence says what the state says, and a verifier that knows only the identity key believes it.
    private func judge(
        _ decided: Choice?, _ txn: SigningID, _ client: String, _ receipt: String?, _ scene: Scene, _ history: String
    ) async throws {
        let provider = scene.world.provider
        let state = try await provider.parties.view(txn.text, client: client).state
        guard let decided, let receipt else {
            #expect([.canceled, .expired, .failed].contains(state), "\(history): \(state)")
            await #expect(throws: SigningRefusal(.transactionUnknown), "\(history)") {
                try await provider.evidence.bundle(txn.text, for: .client(client))
            }
            return
        }
        #expect(state == decided.state, "\(history): \(state)")
        let bundle = try EvidenceBundle(reading: try await provider.evidence.bundle(txn.text, for: .client(client)))
        #expect(bundle.transactions.map(\.receipt) == [receipt], "\(history)")
        let report = EvidenceVerification.report(on: bundle, trust: scene.identity)
        #expect(report.exitStatus == 0, "\(history): \(report.contradicted.map(\.sentence))")
        let findings = report.established.filter {
            switch $0 {
            case .decided, .refusedBlindly: true
            default: false
            }
        }
        #expect(findings == [decided.finding], "\(history): \(findings)")
        #expect(report.established.contains(.request(txn: txn, .details(SigningWorld.details))), "\(history)")
        let isApproved = decided.state == .approved
        #expect(report.attested.contains(.numberMatched(txn: txn)) == isApproved, "\(history)")
        let isCounted = isApproved && decided.party.pin != nil
        #expect(report.attested.contains(.passwordCounted(txn: txn)) == isCounted, "\(history)")
        let sub = scene.world.base.ana.user.id
        #expect(report.attested.contains(.user(sub: sub, name: "ana")), "\(history)")
    }
}
