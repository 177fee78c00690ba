import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Foundation
import Testing

@testable import AssentTrust

@Suite("35: A device configuration goes forward, and the last one stays")
struct DeviceConfigurationUpdateTests {
    private let samples: DeviceConfigurationSamples
    private let now = DeviceConfigurationSamples.time

    init() throws { samples = try DeviceConfigurationSamples() }

    private func update() throws -> DeviceConfigurationUpdate {
        DeviceConfigurationUpdate(for: DeviceConfigurationSamples.app, keys: try samples.keys)
    }

    /// What an answer leads to, at a time.
    private func answer(
        _ update: inout DeviceConfigurationUpdate, _ text: String, tag: String? = nil, at now: Int? = nil
    ) -> DeviceConfigurationUpdate.Action {
        guard case .ask = update.on(.due, at: now ?? self.now) else { return .nothing }
        return update.on(.answered(.document(text, tag: tag)), at: now ?? self.now)
    }

    private func code(_ action: DeviceConfigurationUpdate.Action) -> TrustFileError.Code? {
        guard case .rest(let error) = action else { return nil }
        return error?.code
    }

    @Test("A newer version is taken, an older one never, and the same one only if it is not older")
    func forward() async throws {
        var update = try update()
        #expect(update.current == nil)
        guard case .keep(let first) = answer(&update, try await samples.document(7)) else {
            Issue.record("it is not taken")
            return
        }
        #expect(update.current == first && update.reached == 7)
        #expect(code(answer(&update, try await samples.document(6))) == .wrongVersion)
        let earlier = try await samples.document(7, ["iat": .integer(now - 1), "exp": .integer(now + 9)])
        #expect(code(answer(&update, earlier)) == .wrongVersion)
        #expect(update.current == first)
        guard case .keep = answer(&update, try await samples.document(8)) else {
            Issue.record("the newer one is not taken")
            return
        }
        #expect(update.reached == 8)
        // A node that has not started with the change yet.
        #expect(code(answer(&update, try await samples.document(7))) == .wrongVersion)
        #expect(update.current?.content.version == 8)
    }

    @Test("Of two documents of one second the one that allows less stays, whichever comes first, and else the first")
    func together() async throws {
        let changes: [[String: JSONValue?]] = [
            ["status": "loginOnly"], ["status": "disabled"], ["minimumVersion": "3.1"], ["implicit": false],
            ["webLinks": []],
        ]
        let usual = try await samples.document(7)
        for change in changes {
            let strict = try await samples.document(7, change)
            for order in [[usual, strict], [strict, usual]] {
                var update = try update()
                for text in order { _ = answer(&update, text) }
                #expect(update.current?.compact == strict, "\(change)")
                // Also when another process has put it into the vault.
                _ = update.on(.loaded(usual, reached: 7), at: now)
                #expect(update.current?.compact == strict)
            }
        }
        // Each allows something that the other forbids.
        let texts = [
            try await samples.document(7, ["payloadEncryption": "off", "implicit": false]),
            try await samples.document(7, ["payloadEncryption": "on"]),
        ]
        for order in [texts, texts.reversed()] {
            var update = try update()
            _ = answer(&update, order[0])
            #expect(code(answer(&update, order[1])) == .wrongVersion)
            #expect(update.current?.compact == order[0])
        }
        // One second later it is the newer one, whatever it allows.
        var update = try update()
        _ = answer(&update, try await samples.document(7, ["status": "disabled"]))
        _ = answer(&update, try await samples.document(7, ["iat": .integer(now + 1)]))
        #expect(update.current?.content.status == .enabled)
    }

    @Test("No answer, a bad one and 304 leave what is in force")
    func stays() async throws {
        var update = try update()
        #expect(update.on(.due, at: now) == .ask(tag: nil))
        #expect(update.on(.answered(.unchanged), at: now) == .rest(nil))
        #expect(update.current == nil, "304 for nothing is nothing")
        _ = answer(&update, try await samples.document(7), tag: "\"a\"")
        let held = update.current
        #expect(held != nil)
        for bad in [DeviceConfigurationAnswer.failed, .unchanged, .document("x", tag: "\"b\"")] {
            #expect(update.on(.due, at: now + 86_400 * 365) == .ask(tag: "\"a\""))
            _ = update.on(.answered(bad), at: now + 86_400 * 365)
            #expect(update.current == held)
        }
        // Nobody has asked.
        let later = try await samples.document(9)
        #expect(update.on(.answered(.document(later, tag: nil)), at: now) == .nothing)
        #expect(update.current == held)
        #expect(update.on(.due, at: now) == .ask(tag: "\"a\""))
        #expect(update.on(.due, at: now) == .nothing, "one question at a time")
    }

    @Test("A document of another time is refused, and ten minutes are forgiven")
    func time() async throws {
        let text = try await samples.document(7)
        for (time, isTaken) in [
            (now - 601, false), (now - 600, true), (now + 300, true), (now + 899, true), (now + 900, false),
            (0, false), (now + 86_400 * 3650, false),
        ] {
            var update = try update()
            let action = answer(&update, text, at: time)
            #expect((code(action) == .wrongTime) == !isTaken, "\(time - now)")
            #expect((update.current != nil) == isTaken)
        }
    }

    @Test("A stolen key takes no number that servers reach only later than in a day, so that its trust file ends it")
    func poisoned() async throws {
        var update = try update()
        _ = answer(&update, try await samples.document(7))
        for version in [StrictJSON.maximumInteger, now + 86_401] {
            #expect(code(answer(&update, try await samples.document(version))) == .wrongVersion, "\(version)")
            #expect(update.reached == 7 && update.current?.content.version == 7)
        }
        guard case .keep = answer(&update, try await samples.document(now + 86_400)) else {
            Issue.record("a day is not forgiven")
            return
        }
        // The key is taken away, and two days later the server has another number.
        _ = update.on(.keys([try ProtocolKey(samples.stranger)]), at: now)
        let later = now + 2 * 86_400
        let next = try await samples.sign(
            samples.members(later, ["iat": .integer(later), "exp": .integer(later + 300)]), by: samples.stranger)
        guard case .keep = answer(&update, next, at: later) else {
            Issue.record("no later one is taken")
            return
        }
        #expect(update.reached == later)
    }

    @Test("What the vault has is in force, however old; a vault that was put back brings no older one")
    func stored() async throws {
        let text = try await samples.document(7)
        var update = try update()
        _ = update.on(.loaded(text, reached: 7), at: now + 86_400 * 3650)
        #expect(update.current?.content.version == 7)
        _ = update.on(.loaded(try await samples.document(6), reached: 6), at: now)
        #expect(update.current?.content.version == 7 && update.reached == 7)
        var behind = try self.update()
        _ = behind.on(.loaded(text, reached: 8), at: now)
        #expect(behind.current == nil && behind.reached == 8)
        #expect(code(answer(&behind, text)) == .wrongVersion)
        // After an update of the app the document is another version's, and the number still counts.
        var updated = DeviceConfigurationUpdate(
            for: ConfiguredApp(audience: "bank-app/linux/production", version: "3.3.0"), keys: try samples.keys)
        _ = updated.on(.loaded(text, reached: 7), at: now)
        #expect(updated.current == nil && updated.reached == 7)
    }

    @Test("A key that the trust file takes away takes its document along")
    func keys() async throws {
        var update = try update()
        _ = answer(&update, try await samples.document(7))
        let both = try samples.keys + [try ProtocolKey(samples.stranger)]
        _ = update.on(.keys(both), at: now)
        #expect(update.current != nil)
        _ = update.on(.keys([try ProtocolKey(samples.stranger)]), at: now)
        #expect(update.current == nil && update.reached == 7)
        let next = try await samples.sign(samples.members(8), by: samples.stranger)
        guard case .keep = answer(&update, next) else {
            Issue.record("the other key's document is not taken")
            return
        }
        _ = update.on(.keys([]), at: now)
        #expect(update.current == nil)
    }
}
