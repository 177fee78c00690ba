import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine

/// Tries every fault of a node at which somebody signs in with a PIN, or at which logins are ended, with what comes to
/// another node in between, on the real engine and a real database.
@Suite("One login with a PIN, two nodes, and every way in which a write can fail")
struct LoginExplorationTests {
    private typealias Fault = NodeDatabase.Fault

    /// What is asked of the second node.
    private enum Act: Hashable, CaseIterable {
        /// The same evaluation, for another login.
        case again
        /// A wrong PIN.
        case guess
        case wipe, removal

        var end: LoginEnd? {
            switch self {
            case .again, .guess: nil
            case .wipe: .wipe
            case .removal: .removal
            }
        }
    }

    private struct Case: CustomStringConvertible {
        /// What happens to one of the first node's writes.
        let fault: Fault
        let write: Int
        /// What is asked of the second node, and before which of these writes; `nil` for nothing.
        let second: Act?
        let tries: Int

        var faults: [Fault] { Array(repeating: .none, count: write) + [fault] }
        var description: String {
            "\(fault) at write \(write), second \(second.map { "\($0)" } ?? "-") before \(tries)"
        }
    }

    /// What both nodes have said.
    private struct Told {
        /// Each login that was acknowledged, and its id.
        var logins: [(jti: SigningID, tokens: IssuedTokens)] = []
        /// Set when the second node has acknowledged an end: how many logins there were by then.
        var loginsBeforeEnd: Int64?
    }

    /// What the database has of a container's logins.
    private struct Found {
        let takers: [String]
        let sessions, grants, proofs, records: Int64
        let n, used: Int64
        /// The numbers of the evaluations that are on record.
        let evaluations: [Int64]

        init(_ world: LoginWorld) async throws {
            let (did, client) = (world.did.text, world.instance)
            let slot = try #require(
                try await world.database.run(.read("SELECT n, floor FROM signing_slots WHERE did = \(did)")).first)
            n = try slot.integer("n")
            used = try n - slot.integer("floor")
            takers = try await world.database.run(
                .read("SELECT taken_by FROM signing_confirms WHERE did = \(did) AND taken_by IS NOT NULL")
            ).map { try $0.text("taken_by") }
            sessions = try await world.count("sessions", "did = '\(did)'")
            // One whose session is gone is worth nothing, and is purged some time.
            grants = try await world.count(
                "grants", "client_id = '\(client)' AND session_id IN (SELECT id FROM sessions)")
            proofs = try await world.count(
                "signing_proofs", "did = '\(did)' AND 'login:' || jti IN (SELECT taken_by FROM signing_confirms)")
            let notes = try await world.database.run(
                .read(
                    """
                    SELECT detail FROM audit
                    WHERE event IN ('signing.login', 'signing.slot') AND outcome = 'success'
                        AND detail LIKE \("%\(did)%")
                    """))
            let details = try notes.map { try JSONValue.parse($0.text("detail")) }
            records = Int64(details.count { $0["method"]?.string == "pin" })
            evaluations = details.compactMap { detail in
                guard detail["step"]?.string == "evaluated" else { return nil }
                return detail["n"]?.integer
            }
        }
    }

    @Test("A PIN login happens once or not at all, and never after a wipe or a removal that was acknowledged")
    func logins() async throws {
        let world = try await LoginWorld()
        let healthy = NodeDatabase(world.database, [])
        let node = try LoginWorld.node(healthy, of: world.signing)
        _ = try await pass(world, at: node) { _ in }
        let writes = healthy.writeCount
        #expect(writes >= 3, "the guess, its confirmation, the login")
        var cases: [Case] = []
        for write in 0..<writes {
            for fault in Fault.allCases where fault != .none || write == 0 {
                cases.append(Case(fault: fault, write: write, second: nil, tries: 0))
                for act in Act.allCases {
                    cases += (0..<writes).map { Case(fault: fault, write: write, second: act, tries: $0) }
                }
            }
        }
        // Each is tried by make soak on the embedded database.
        for index in stride(from: 0, to: cases.count, by: TestDatabase.isPostgreSQL ? 23 : Soak.isOn ? 1 : 7) {
            try await run(cases[index], try await world.another())
            world.signing.base.clock.advance(by: 61)
        }
    }

    // MARK: - One case

    private func run(_ each: Case, _ world: LoginWorld) async throws {
        let told = Locked(Told())
        let parts = Locked<LoginWorld.Parts?>(nil)
        let healthy = try LoginWorld.node(world.database, of: world.signing)
        let root = try await world.administrator()
        let database = NodeDatabase(world.database, each.faults) { write in
            guard write == each.tries, let act = each.second else { return }
            let known = parts.withLock { $0 }
            do {
                try await ask(act, world, at: healthy, by: root, known, told)
            } catch {
                Issue.record("\(each): \(error)")
            }
        }
        let node = try LoginWorld.node(database, of: world.signing)
        // As the device does: where an answer is lost all calls are made once more, here at the other node.
        for provider in [node, healthy] {
            guard let login = try? await pass(world, at: provider, { own in parts.withLock { $0 = own } }) else {
                continue
            }
            guard provider === healthy || !database.isDead else { continue }
            told.withLock { $0.logins.append(login) }
            break
        }
        var faults = try await faults(each, told.withLock { $0 }, world)
        faults += try await guessFaults(each, world, isEnded: told.withLock { $0.loginsBeforeEnd != nil })
        #expect(faults.isEmpty, "\(each)")
        let did = world.did.text
        _ = try? await healthy.configuration.signing?.devices.change(SigningCaller(root), did: did, .revoke)
    }

    /// The three calls of a login with the PIN, at one node.
    private func pass(
        _ world: LoginWorld, at node: OAuthProvider, _ isTyped: (LoginWorld.Parts) -> Void
    ) async throws -> (jti: SigningID, tokens: IssuedTokens) {
        let signing = try #require(node.configuration.signing)
        let parts = try await SigningWorld.$route.withValue({ signing }) { try await world.typed() }
        isTyped(parts)
        return (parts.jti, try await world.logIn(parts, on: node))
    }

    private func ask(
        _ act: Act, _ world: LoginWorld, at node: OAuthProvider, by root: LiveSession, _ known: LoginWorld.Parts?,
        _ told: Locked<Told>
    ) async throws {
        switch act {
        case .again:
            guard var own = known else { return }
            own.jti = SigningID(random: SystemRandom())
            let tokens = try await world.logIn(own, on: node)
            told.withLock { [own] in $0.logins.append((own.jti, tokens)) }
        case .guess:
            let pin = try #require(world.pin)
            let signing = try #require(node.configuration.signing)
            let opened = try await SigningWorld.$route.withValue({ signing }) { try await pin.unlock("0000") }
            #expect(opened == nil)
        case .wipe, .removal:
            try await act.end?.run(world, on: node, by: root)
            let made = Int64(try await Found(world).takers.count)
            told.withLock { $0.loginsBeforeEnd = made }
        }
    }

    /// What is wrong with what is stored, and with what was told.
    private func faults(_ each: Case, _ told: Told, _ world: LoginWorld) async throws -> [String] {
        let found = try await Found(world)
        let made = Int64(found.takers.count)
        var faults: [String] = []
        func expect(_ condition: Bool, _ fault: String) { if !condition { faults.append(fault) } }
        expect(Set(found.takers).count == found.takers.count, "one login has taken two evaluations")
        expect(found.records == made && found.proofs == made, "half done: \(found)")
        for login in told.logins { expect(found.takers.contains("login:\(login.jti)"), "told, and not done") }
        for login in told.logins {
            let isLive = try await world.isLive(login.tokens)
            expect(isLive == (told.loginsBeforeEnd == nil), "a token is \(isLive ? "" : "not ")valid")
        }
        if let before = told.loginsBeforeEnd, let end = each.second?.end {
            expect(made == before, "\(made - before) logins after the end")
            expect(found.sessions == 0 && found.grants == 0, "left after the end: \(found)")
            let refusal = try await world.refusal(try world.implicit())
            expect(refusal == end.refusal, "then it is \(refusal ?? "answered")")
        } else {
            expect(found.sessions == made, "\(found.sessions) sessions of \(made) logins")
            expect(!told.logins.isEmpty, "nobody has signed in")
            // A login whose answer was lost may be one more.
            let lost = each.fault == .doneUnknown || each.fault == .crashAfter ? 1 : 0
            expect(Int(made) <= told.logins.count + lost, "\(made) logins, \(told.logins.count) told")
        }
        return faults
    }

    /// What is wrong with how the server has counted, whatever was lost: then the rest of the guesses is made.
    private func guessFaults(_ each: Case, _ world: LoginWorld, isEnded: Bool) async throws -> [String] {
        let found = try await Found(world)
        let pin = try #require(world.pin)
        let most = Int64(5)
        var faults: [String] = []
        if found.evaluations.sorted() != (0..<found.n).map({ $0 + 1 }) {
            faults.append("\(found.n) are counted, and on record are \(found.evaluations)")
        }
        var guesses = Int64(0)
        let code = try await refusal {
            while guesses <= most {
                let opened = try await pin.unlock("0000")
                #expect(opened == nil)
                guesses += 1
            }
        }
        if isEnded {
            if guesses != 0 { faults.append("\(guesses) guesses after the end") }
        } else if guesses != most - found.used || code != "locked" {
            faults.append("\(found.used) used, and then \(guesses) more: \(code ?? "answered")")
        }
        return faults
    }

    // MARK: - Ends

    @Test("A wipe and a removal happen as a whole or not at all, with a login in between, and leave no login behind")
    func ends() async throws {
        let world = try await LoginWorld()
        for end in [LoginEnd.wipe, .removal] {
            for fault in Fault.allCases {
                for isTried in [false, true] {
                    let own = try await world.another()
                    let root = try await own.administrator()
                    let parts = try await own.typed()
                    if !isTried { _ = try await own.logIn(parts) }
                    let database = NodeDatabase(own.database, [fault]) { write in
                        guard isTried, write == 0 else { return }
                        _ = try? await own.logIn(parts)
                    }
                    let node = try LoginWorld.node(database, of: own.signing)
                    let told: Bool
                    do {
                        try await end.run(own, on: node, by: root)
                        told = !database.isDead
                    } catch {
                        told = false
                    }
                    let isDone = [.none, .doneUnknown, .crashAfter].contains(fault)
                    #expect(told == (fault == .none), "\(end) \(fault)")
                    try await check(end, own, isDone: isDone, "\(end) \(fault) \(isTried)")
                    // What had no answer is asked again, and is done then.
                    if !isDone {
                        try await end.run(own)
                        try await check(end, own, isDone: true, "\(end) \(fault) \(isTried) again")
                    }
                    _ = try? await own.signing.provider.devices.change(
                        SigningCaller(root), did: own.did.text, .revoke)
                    world.signing.base.clock.advance(by: 61)
                }
            }
        }
    }

    private func check(_ end: LoginEnd, _ world: LoginWorld, isDone: Bool, _ place: String) async throws {
        let found = try await Found(world)
        let did = world.did.text
        let keys = try await world.count("signing_keys", "did = '\(did)' AND label = 'sign-in' AND state = 'ACTIVE'")
        let sealed = try await world.count("signing_slots", "did = '\(did)' AND sealed_k IS NOT NULL")
        let instances = try await world.count("client_instances", "id = '\(world.instance)'")
        let containers = try await world.count("signing_containers", "did = '\(did)' AND state = 'ACTIVE'")
        #expect(found.takers.count == 1 && found.records == 1, "\(place): \(found)")
        #expect(found.sessions == (isDone ? 0 : 1) && (found.grants == 0) == isDone, "\(place): \(found)")
        #expect(keys == (isDone ? 0 : 1) && sealed == keys, "\(place): \(keys) keys, \(sealed) sealed")
        let isRemoved = isDone && end == .removal
        #expect(instances == (isRemoved ? 0 : 1) && containers == instances, "\(place)")
        let refusal = try await world.refusal(try world.implicit())
        #expect(refusal == (isDone ? end.refusal : nil), "\(place): \(refusal ?? "answered")")
    }
}
