import AssentCore
import AssentJOSE
import Testing

@testable import AssentSigning
@testable import AssentSigningProtocol

@Suite("Signing device: what it keeps of a password")
struct SlotRecordTests {
    private let key: ProtocolKey

    init() throws { key = try ProtocolKey(SoftwareSigningKey.generate(.es256)) }

    private func generation(_ number: Int) throws -> SealedGeneration {
        SealedGeneration(
            generation: number, salt: [UInt8](repeating: UInt8(number), count: 16),
            cost: try #require(PasswordCost(logN: 14, r: 8, p: 1)),
            keys: [SealedKeyRecord(label: "payments", jwk: key, blob: [1, 2, 3])])
    }

    /// A record with everything that there can be.
    private func record(_ mode: PasswordMode) throws -> SlotRecord {
        var record = SlotRecord(slot: .signing, mode: mode, current: try generation(0))
        record.pending = try generation(1)
        record.commit = "a.b.c"
        (record.ratchet, record.ratchetNext) = (Secret(bytes: 0..<32), Secret(bytes: 1..<33))
        (record.last, record.confirmation, record.confirmed) = ("d", "e", "f")
        return record
    }

    private func status(_ state: PasswordSlotState, generation: Int = 0, tries: Int = 4) -> SlotStatus {
        SlotStatus(slot: .signing, generation: generation, state: state, tries: tries, spare: 19, wait: 0)
    }

    @Test("The server's word changes no password that only the device checks")
    func local() throws {
        let before = try record(.local)
        for state in PasswordSlotState.allCases {
            for generation in [0, 1] {
                var record = before
                record.adopt(status(state, generation: generation))
                #expect(record.encoded() == before.encoded(), "\(state), \(generation)")
            }
        }
    }

    @Test("Keys that are destroyed stay so, whatever the server says later")
    func destroyed() throws {
        var record = try record(.assisted)
        record.adopt(status(.shredded))
        #expect(record.state == .shredded && record.current.keys.map(\.blob) == [[]])
        #expect(record.pending == nil && record.commit == nil && record.ratchet == nil && record.ratchetNext == nil)
        #expect(record.last == nil && record.confirmation == nil && record.confirmed == nil)
        // Which key it was is still known.
        #expect(record.current.keys.map(\.jwk) == [key])
        let after = record.encoded()
        for generation in [0, 1] {
            record.adopt(status(.open, generation: generation))
            #expect(record.encoded() == after)
        }
    }

    @Test("A password that was changed counts when the server names its generation, and not before")
    func changed() throws {
        for (number, isTaken) in [(0, false), (1, true), (2, false)] {
            var record = try record(.assisted)
            record.adopt(status(.locked, generation: number, tries: 0))
            #expect(record.current.generation == (isTaken ? 1 : 0))
            #expect((record.pending == nil) == isTaken && (record.commit == nil) == isTaken)
            #expect(record.state == .locked && record.tries == 0 && record.spare == 19)
            // An open confirmation is the server's still.
            #expect(record.confirmation == "e" && record.ratchetNext != nil)
        }
    }

    @Test("What the server said before something newer counts only where it never goes back")
    func late() throws {
        let before = try record(.assisted)
        for state in [PasswordSlotState.open, .locked] {
            var record = before
            record.adopt(status(state, tries: 1), .earlier)
            #expect(record.encoded() == before.encoded(), "\(state)")
        }
        var changed = before
        changed.adopt(status(.locked, generation: 1, tries: 0), .earlier)
        #expect(changed.current.generation == 1 && changed.pending == nil)
        #expect(changed.state == before.state && changed.tries == before.tries)
        var destroyed = before
        destroyed.adopt(status(.shredded), .earlier)
        #expect(destroyed.state == .shredded && destroyed.current.keys.map(\.blob) == [[]])
        // A key that was made since is another one.
        var renewed = before
        (renewed.current, renewed.pending) = (try generation(2), nil)
        renewed.adopt(status(.shredded, generation: 1), .earlier)
        #expect(renewed.state == before.state && renewed.current.keys.map(\.blob) == [[1, 2, 3]])
    }

    @Test("Of what was signed in the same second the stricter counts, and of an earlier generation nothing")
    func together() throws {
        var record = try record(.assisted)
        (record.state, record.tries, record.spare) = (.open, 3, 19)
        let statuses = [status(.locked, tries: 4), status(.open, tries: 2)]
        for order in [statuses, statuses.reversed()] {
            var told = record
            for status in order { told.adopt(status, .together) }
            #expect(told.state == .locked && told.tries == 2 && told.spare == 19)
        }
        var renewed = record
        (renewed.current, renewed.pending) = (try generation(2), nil)
        let before = renewed.encoded()
        renewed.adopt(status(.locked, generation: 1, tries: 0), .together)
        #expect(renewed.encoded() == before)
    }

    // MARK: Memory

    @Test("A password is remembered for its generation, so long and so often, and for its own keys only")
    func remembered() async throws {
        let (memory, kept) = (DeviceMemory(), try record(.assisted))
        let (one, two) = (SigningID(random: SystemRandom()), SigningID(random: SystemRandom()))
        func remember(generation: Int = 0) async {
            await memory.remember(
                RememberedPassword(s: Secret("s"), generation: generation, until: .seconds(60), uses: 2), one, .signing)
        }
        func taken(_ id: SigningID, at seconds: Int) async -> Secret? {
            await memory.takeRemembered(id, kept, at: .seconds(seconds))
        }
        await remember()
        #expect(await taken(two, at: 0) == nil)
        #expect(await taken(one, at: 0) == Secret("s"))
        #expect(await taken(one, at: 59) == Secret("s"))
        #expect(await taken(one, at: 59) == nil)
        await remember()
        #expect(await memory.isRemembered(one, .signing, at: .seconds(59)))
        #expect(await !memory.isRemembered(one, .signing, at: .seconds(60)))
        #expect(await taken(one, at: 60) == nil)
        // What is too old is forgotten, also if the clock were wrong.
        #expect(await taken(one, at: 0) == nil)
        await remember(generation: 1)
        #expect(await taken(one, at: 0) == nil)
        await remember()
        await memory.forget(one, .session)
        await memory.forget(two)
        #expect(await taken(one, at: 0) != nil)
        await memory.forget(one)
        #expect(await taken(one, at: 0) == nil)
    }

    @Test("The open key of a session goes with its password, and not with another one")
    func sessions() async throws {
        let memory = DeviceMemory()
        let id = SigningID(random: SystemRandom())
        func keep() async {
            await memory.keep(
                OpenSession(key: .generate(), generation: 0, salt: [], passwordTime: 0), id)
        }
        await keep()
        await memory.forget(id, .signing)
        #expect(await memory.session(id) != nil)
        await memory.forget(id, .session)
        #expect(await memory.session(id) == nil)
        await keep()
        await memory.forget(id)
        #expect(await memory.session(id) == nil)
    }

    @Test("A notice that comes again is heard once, the newest are kept, and the next list names the last ones")
    func notices() async {
        let memory = DeviceMemory()
        let id = SigningID(random: SystemRandom())
        func notice(_ number: Int) -> Notice {
            Notice(
                id: SigningID(random: SystemRandom()), at: number, event: .enrolled, did: id, name: "Phone \(number)")
        }
        let all = (0..<80).map(notice)
        for start in stride(from: 0, to: 80, by: 16) {
            let list = Array(all[start..<start + 16])
            for _ in 0..<2 { await memory.hear(list, id) }
            #expect(await memory.receivedNotices(id) == list.map(\.id))
        }
        #expect(await memory.takeNotices(id).map(\.containerName) == all.suffix(64).map(\.name))
        #expect(await memory.takeNotices(id).isEmpty)
        await memory.hear([], id)
        #expect(await memory.receivedNotices(id).isEmpty)
    }

    // MARK: Opened keys

    @Test("The password that is replaced is the newest of those that must not come back, as many as the rules say")
    func history() throws {
        func earlier(_ number: UInt8) -> SealedKeyContent.Earlier {
            .init(salt: [UInt8](repeating: number, count: 16), s: Secret(bytes: [number]))
        }
        let content = SealedKeyContent(
            scalar: OpenedKeys.newScalar(), passwordTime: 9, history: [earlier(7), earlier(6)])
        let older = SealedKeyContent(
            scalar: OpenedKeys.newScalar(), passwordTime: 5, history: [earlier(7), earlier(6)])
        let opened = OpenedKeys(contents: ["a": content, "b": older], s: Secret(bytes: [8]))
        // The oldest of the keys decides how old the password is.
        #expect(opened.passwordTime == 5)
        var kept = try record(.local)
        kept.current.salt = [UInt8](repeating: 8, count: 16)
        for count in 0...4 {
            var rules = PasswordRules(minLength: 4, maxLength: 8)
            rules.history = count
            let history = opened.history(replacing: kept, rules)
            #expect(history.map(\.s) == Array([8, 7, 6].map { Secret(bytes: [UInt8($0)]) }.prefix(count)))
            #expect(history.map { $0.salt.first } == Array([8, 7, 6].map { UInt8?($0) }.prefix(count)))
        }
        #expect(throws: SigningError(.credentialsLost)) { try opened.signingKey("c") }
        #expect(throws: SigningError(.credentialsLost)) { try opened.agreementKey("c") }
    }

    @Test("A blob that holds no key, or a time that is no number of the protocol, is not opened as one")
    func contents() {
        let scalar = [UInt8](1...32)
        func content(_ time: [UInt8], _ rest: [UInt8]) -> SealedKeyContent? { SealedKeyContent(scalar + time + rest) }
        let now: [UInt8] = [0, 0, 0, 0, 0, 0, 1, 2]
        #expect(content(now, [0])?.passwordTime == 258)
        #expect(content(now, [1] + [UInt8](repeating: 7, count: 48))?.history.count == 1)
        #expect(content([0, 0x1F, 255, 255, 255, 255, 255, 255], [0])?.passwordTime == StrictJSON.maximumInteger)
        #expect(content([0, 0x20, 0, 0, 0, 0, 0, 0], [0]) == nil)
        #expect(content([255, 0, 0, 0, 0, 0, 0, 0], [0]) == nil)
        for rest: [UInt8] in [[], [1], [0, 0], [1] + [UInt8](repeating: 7, count: 47), [255]] {
            #expect(content(now, rest) == nil, "\(rest.count)")
        }
        #expect(SealedKeyContent([]) == nil)
    }
}
