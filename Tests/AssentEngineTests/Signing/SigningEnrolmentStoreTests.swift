import AssentSigningProtocol
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Enrolling a signing device, as statements")
struct SigningEnrolmentStoreTests {
    @Test("An invite takes five devices, one commitment and one container")
    func invite() async throws {
        let fixture = try await SigningStoreFixture()
        let invite = try await fixture.invited()
        var enrolments: [SigningEnrolmentRecord] = []
        for _ in 0..<5 { enrolments.append(try await fixture.started(invite)) }
        let sixth = fixture.enrolment(invite)
        #expect(try await !fixture.enrolments.start(sixth, user: fixture.user, isAgain: false, at: fixture.now))
        let nonce = try await fixture.commit(enrolments[1])
        #expect(try await fixture.commit(enrolments[1]) == nonce)
        #expect(try await signingCode { _ = try await fixture.commit(enrolments[0]) } == .enrolmentVoid)
        #expect(try await !fixture.complete(fixture.container(enrolments[0])))
        let container = fixture.container(enrolments[1])
        #expect(try await fixture.complete(container))
        #expect(try await !fixture.complete(container))
        #expect(try await fixture.state(container) == .unconfirmed)
        #expect(try await fixture.invites.find(invite.pid)?.state == .used)
    }

    @Test("The code opens the invite of its issuer while it is open and not over")
    func code() async throws {
        let fixture = try await SigningStoreFixture()
        let invite = try await fixture.invited()
        let code = "code" + invite.pid.text
        #expect(try await fixture.invites.open(codeHash: code, at: fixture.now)?.pid == invite.pid)
        #expect(try await fixture.invites.open(codeHash: "other", at: fixture.now) == nil)
        let issuer = SigningIssuer(name: "https://x", realm: "/alpha")
        let other = SigningProvider(fixture.base.context, settings: SigningSettings(issuer: issuer, name: "x"))
        #expect(try await other.invites.open(codeHash: code, at: fixture.now) == nil)
        #expect(try await fixture.invites.open(codeHash: code, at: invite.expiresAt - 1) != nil)
        #expect(try await fixture.invites.open(codeHash: code, at: invite.expiresAt) == nil)
        #expect(try await fixture.invites.void(invite, at: fixture.now))
        #expect(try await !fixture.invites.void(invite, at: fixture.now))
        #expect(try await fixture.invites.open(codeHash: code, at: fixture.now) == nil)
    }

    @Test("A device that asks again has the same enrolment with its last offer, until it commits")
    func again() async throws {
        let fixture = try await SigningStoreFixture()
        let invite = try await fixture.invited()
        let enrolment = try await fixture.started(invite)
        let second = SigningEnrolmentRecord(
            did: enrolment.did, pid: invite.pid, deviceKeyID: enrolment.deviceKeyID, deviceJWK: "{}",
            requestHash: "other", offer: "second", info: "{}", expiresAt: invite.expiresAt)
        #expect(try await !fixture.enrolments.start(second, user: fixture.user, isAgain: false, at: fixture.now))
        #expect(try await fixture.enrolments.start(second, user: fixture.user, isAgain: true, at: fixture.now))
        let known = try await fixture.enrolments.find(pid: invite.pid, deviceKeyID: enrolment.deviceKeyID)
        #expect(known?.offer == "second" && known?.did == enrolment.did)
        _ = try await fixture.commit(second)
        #expect(try await !fixture.enrolments.start(second, user: fixture.user, isAgain: true, at: fixture.now))
    }

    @Test("Another commitment ends the enrolment")
    func changedCommitment() async throws {
        let fixture = try await SigningStoreFixture()
        let enrolment = try await fixture.started(try await fixture.invited())
        _ = try await fixture.commit(enrolment)
        #expect(try await signingCode { _ = try await fixture.commit(enrolment, "another") } == .commitmentChanged)
        #expect(try await fixture.invites.find(enrolment.pid)?.state == .void)
        #expect(try await !fixture.complete(fixture.container(enrolment)))
        #expect(try await signingCode { _ = try await fixture.commit(enrolment) } == .enrolmentVoid)
    }

    @Test("Of many commitments at once the invite takes one")
    func commitRace() async throws {
        let fixture = try await SigningStoreFixture()
        let invite = try await fixture.invited()
        var enrolments: [SigningEnrolmentRecord] = []
        for _ in 0..<5 { enrolments.append(try await fixture.started(invite)) }
        let taken = try await withThrowingTaskGroup(of: Bool.self) { group in
            for enrolment in enrolments {
                group.addTask { try await signingCode { _ = try await fixture.commit(enrolment) } == nil }
            }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(taken == 1)
    }

    @Test("A container is active when its device has confirmed and the digits were right, in either order")
    func activation() async throws {
        for digitsFirst in [true, false] {
            let fixture = try await SigningStoreFixture()
            let container = try await fixture.completed()
            let (store, now) = (fixture, fixture.now)
            #expect(
                try await !store.enrolments.confirm(container, echoHash: "x", activation: fixture.activation(), at: now)
            )
            let last = fixture.activation(now + 7)
            if digitsFirst {
                #expect(try await store.enrolments.acceptDigits(container, activation: fixture.activation(), at: now))
                #expect(try await fixture.state(container) == .unconfirmed)
                #expect(try await store.enrolments.confirm(container, echoHash: "echo", activation: last, at: now))
            } else {
                #expect(
                    try await store.enrolments.confirm(
                        container, echoHash: "echo", activation: fixture.activation(), at: now))
                #expect(try await fixture.state(container) == .unconfirmed)
                #expect(try await store.enrolments.acceptDigits(container, activation: last, at: now))
            }
            let known = try #require(try await store.devices.find(container.did))
            #expect(known.state == .active && known.record == last.hash && known.approvalsFrom == now + 7)
            #expect(
                try await store.enrolments.confirm(
                    container, echoHash: "echo", activation: fixture.activation(), at: now))
            #expect(try await store.devices.find(container.did)?.record == last.hash)
            let records = try await fixture.base.database.run(.read("SELECT record FROM signing_records"))
            #expect(try records.map { try $0.text("record") } == [last.record])
            let notes = try await fixture.base.database.run(
                .read("SELECT id FROM audit WHERE event = 'signing.enrol' AND detail LIKE '%active%'"))
            #expect(notes.count == 1)
        }
    }

    @Test("Confirmation and digits at the same moment make the container active once")
    func activationRace() async throws {
        let fixture = try await SigningStoreFixture()
        for _ in 0..<10 {
            let container = try await fixture.completed()
            let now = fixture.now
            async let echo = fixture.enrolments.confirm(
                container, echoHash: "echo", activation: fixture.activation(), at: now)
            async let digits = fixture.enrolments.acceptDigits(container, activation: fixture.activation(), at: now)
            #expect(try await (echo, digits) == (true, true))
            #expect(try await fixture.state(container) == .active)
            _ = try await fixture.devices.change(container, .revoke, by: "test", at: now)
        }
    }

    @Test("Digits are compared three times, and then the container is void")
    func digits() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.completed()
        let invite = try #require(try await fixture.invites.find(container.pid))
        for remaining in [2, 1, 0] {
            let result = try await fixture.invites.compare(digits: "00000000", pid: container.pid, at: fixture.now)
            #expect(result == .wrong(remaining: remaining))
            try await fixture.invites.refuseDigits(invite, remaining: remaining, at: fixture.now)
        }
        let result = try await fixture.invites.compare(digits: "12345678", pid: container.pid, at: fixture.now)
        #expect(result == .nothingToCompare)
        #expect(try await fixture.state(container) == .void)
        #expect(try await fixture.devices.keys(of: container.did).isEmpty)
    }

    @Test("Of a hundred entries of digits at once three are compared")
    func digitsRace() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.completed()
        let compared = try await withThrowingTaskGroup(of: Bool.self) { group in
            for guess in 0..<100 {
                group.addTask {
                    try await fixture.invites.compare(
                        digits: String(10_000_000 + guess), pid: container.pid, at: fixture.now) != .nothingToCompare
                }
            }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(compared == 3)
    }

    @Test("What was not completed in time is void, before housekeeping says so")
    func overdue() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.completed()
        fixture.base.clock.advance(by: 900 + 599)
        #expect(container.state(at: fixture.now) == .unconfirmed)
        fixture.base.clock.advance(by: 1)
        #expect(container.state(at: fixture.now) == .void)
        let (store, now) = (fixture, fixture.now)
        #expect(
            try await !store.enrolments.confirm(container, echoHash: "echo", activation: fixture.activation(), at: now))
        #expect(try await !store.enrolments.acceptDigits(container, activation: fixture.activation(), at: now))
        #expect(try await store.invites.compare(digits: "12345678", pid: container.pid, at: now) == .nothingToCompare)
        try await SigningHousekeeping.purge(fixture.base.context)
        #expect(try await fixture.state(container) == .void)
        #expect(try await store.devices.keys(of: container.did).isEmpty)
    }

    @Test(
        "A user has so many containers, also when several devices complete at once; one that has ended frees its place")
    func limit() async throws {
        let fixture = try await SigningStoreFixture()
        var waiting: [SigningContainerRecord] = []
        for _ in 0..<8 {
            let enrolment = try await fixture.started(try await fixture.invited())
            _ = try await fixture.commit(enrolment)
            waiting.append(fixture.container(enrolment))
        }
        let made = try await withThrowingTaskGroup(of: Bool.self) { group in
            for container in waiting {
                group.addTask {
                    try await signingCode { _ = try await fixture.complete(container, limit: 3) } != .deviceLimit
                }
            }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(made == 3)
        let containers = try await fixture.devices.of(user: fixture.user)
        #expect(containers.count == 3)
        let (first, now) = (try #require(containers.first), fixture.now)
        #expect(try await fixture.devices.change(first, .revoke, by: "user", at: now))
        let next = try #require(waiting.first { each in !containers.contains { $0.did == each.did } })
        #expect(try await fixture.complete(next, limit: 3))
    }

    @Test("A container is blocked, let in again and ended; an ended one stays ended")
    func changes() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        func change(_ change: ContainerChange) async throws -> Bool {
            try await fixture.devices.change(container, change, by: "test", at: fixture.now)
        }
        #expect(try await !change(.unblock))
        #expect(try await change(.block))
        #expect(try await !change(.block))
        #expect(try await fixture.state(container) == .blocked)
        #expect(try await change(.unblock))
        #expect(try await change(.rename("phone")))
        #expect(try await fixture.devices.find(container.did)?.name == "phone")
        #expect(try await change(.revoke))
        #expect(try await fixture.devices.keys(of: container.did).allSatisfy { !$0.isActive })
        for each in [ContainerChange.block, .unblock, .revoke, .rename("x")] { #expect(try await !change(each)) }
    }

    @Test("A container that is let in again is what it was before its block; of one that nobody knows, suspect")
    func unblocked() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        func set(_ state: ContainerState) async throws {
            _ = try await fixture.base.database.run(
                SQLStatement("UPDATE signing_containers SET state = \(state)", expecting: .exactly(1)))
        }
        func change(_ change: ContainerChange) async throws -> Bool {
            try await fixture.devices.change(container, change, by: "test", at: fixture.now)
        }
        for before in [ContainerState.suspect, .active, .suspect] {
            try await set(before)
            #expect(try await change(.block))
            #expect(try await !change(.block))
            #expect(try await fixture.state(container) == .blocked)
            #expect(try await change(.unblock))
            #expect(try await fixture.state(container) == before)
        }
        // As it stands in a database from before that was kept.
        try await set(.blocked)
        #expect(try await change(.unblock))
        #expect(try await fixture.state(container) == .suspect)
    }

    @Test("A proof is spent together with what it does, once")
    func proofs() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        let proof = fixture.proof(container.did)
        let (store, now) = (fixture, fixture.now)
        #expect(
            try await store.devices.update(container, name: "a", pushID: "p", properties: nil, proof: proof, at: now))
        #expect(
            try await signingCode {
                _ = try await store.devices.update(
                    container, name: "b", pushID: "", properties: nil, proof: proof, at: now)
            } == .replay)
        let known = try #require(try await store.devices.find(container.did))
        #expect(known.name == "a" && known.pushID == "p")
        let other = fixture.proof(container.did)
        #expect(
            try await store.devices.update(container, name: nil, pushID: "", properties: "[]", proof: other, at: now))
        let latest = try #require(try await store.devices.find(container.did))
        #expect(latest.name == "a" && latest.pushID == nil && latest.properties == "[]")
        fixture.base.clock.advance(by: 390)
        try await SigningHousekeeping.purge(fixture.base.context)
        let left = try await fixture.base.database.run(.read("SELECT jti FROM signing_proofs"))
        #expect(left.isEmpty)
    }

    @Test("The keys of a device that was never confirmed go with it when the user enrols the next one")
    func keysOfOverdue() async throws {
        let fixture = try await SigningStoreFixture()
        let overdue = try await fixture.completed()
        let other = try await fixture.active()
        #expect(try await fixture.devices.keys(of: overdue.did).count == 3)
        fixture.base.clock.advance(by: 30 * 60)
        _ = try await fixture.completed()
        #expect(try await fixture.state(overdue) == .void)
        #expect(try await fixture.devices.keys(of: overdue.did).isEmpty)
        #expect(try await fixture.devices.keys(of: other.did).count == 3)
    }
}
