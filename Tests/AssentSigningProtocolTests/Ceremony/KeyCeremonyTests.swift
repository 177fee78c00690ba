import AssentCore
import AssentJOSE
import TestSupport
import Testing

@testable import AssentSigningProtocol

@Suite("Signing: the ceremony that gives a device keys")
struct KeyCeremonyTests {
    /// Which event, without what it carries.
    enum Kind: CaseIterable { case offer, keys, keysForgotten, offerForgotten, nonce, signed, enrolled, confirmed }

    private static let sub = "user-1"
    private static let beginnings: [KeyCeremony.Beginning] = [
        .invite, .container(sub: sub, hasCode: false), .container(sub: sub, hasCode: true),
    ]

    private let offer: SignedMessage<Offer>
    private let nonceD = SigningNonce(random: SystemRandom())
    private let nonceS = SigningNonce(random: SystemRandom())
    private let echo = SigningNonce(random: SystemRandom())

    init() async throws {
        let content = try CompactParts(Vectors.load().compact("offer")).object(1)
        offer = try await SignedMessage.sign(
            Offer(plaintext: JSONValue.object(content).serializedBytes()), with: SoftwareSigningKey.generate(.es256))
    }

    private func event(_ kind: Kind, sub: String = sub) -> KeyCeremony.Event {
        let head = SigningReplyHead(
            issuer: "https://am.example/signing", audience: "a", issuedAt: 1, request: SigningHash(sha256: []))
        return switch kind {
        case .offer: .offer(offer)
        case .keys: .keys(nonceD: nonceD)
        case .keysForgotten: .keysForgotten
        case .offerForgotten: .offerForgotten
        case .nonce: .nonce(NonceReply(head: head, nonceS: nonceS, sub: sub, user: "ana"))
        case .signed: .signed(enrol: offer.compact)
        case .enrolled:
            .enrolled(
                Enrolled(
                    head: head, state: .unconfirmed, serial: "1", name: "Laptop", expiresAt: 9, renewableFrom: 8,
                    echo: echo, handle: Secret("handle"), otp: []))
        case .confirmed: .confirmed
        }
    }

    /// The phases in order, as a ceremony passes through them.
    private var phases: [KeyPhase] {
        let made = KeyPhase.MadeKeys(offer: offer.compact, nonceD: nonceD)
        let committed = KeyPhase.CommittedKeys(made: made, nonceS: nonceS)
        let signed = KeyPhase.SignedKeys(committed: committed, enrol: offer.compact)
        return [
            .begun, .offered(offer: offer.compact), .keysMade(made), .committed(committed), .signed(signed),
            .completed(signed, echo: echo), .confirmed(signed, echo: echo),
        ]
    }

    /// The event that each phase waits for.
    private let expected: [Kind?] = [.offer, .keys, .nonce, .signed, .enrolled, .confirmed, nil]

    @Test("Each event moves the phase that waits for it, and changes nothing in any other one")
    func everyEvent() throws {
        for beginning in Self.beginnings {
            for (index, phase) in phases.enumerated() {
                for kind in Kind.allCases {
                    var ceremony = KeyCeremony(beginning, at: phase)
                    let isTaken = try ceremony.take(event(kind))
                    if kind == expected[index] {
                        #expect(isTaken && ceremony.phase == phases[index + 1])
                    } else if kind == .keysForgotten, index == 2 {
                        #expect(isTaken && ceremony.phase == phases[1])
                    } else if kind == .offerForgotten, index == 1 {
                        #expect(isTaken && ceremony.phase == phases[0])
                    } else {
                        #expect(!isTaken && ceremony.phase == phase, "\(kind) in phase \(index)")
                    }
                }
            }
        }
    }

    @Test("What is done in each phase, also when the process that made the keys has ended")
    func steps() throws {
        let (made, committed, signed) = (phases[2].made, phases[3].committed, phases[4].signed)
        let all = try (#require(made), #require(committed), #require(signed))
        let lost: [KeyCeremony.SealedKeys] = [true, false].flatMap { assisted in
            [true, false].map { .lost(isAssisted: assisted, hasTransport: $0) }
        }
        for beginning in Self.beginnings {
            for sealed in [.open] + lost {
                let steps = phases.map { KeyCeremony(beginning, at: $0).next(sealed) }
                var wanted: [KeyCeremony.Step] = [
                    .start, .makeKeys(offer: offer.compact), .commit(all.0), .sign(all.1), .complete(all.2),
                    .confirm(all.2, echo: echo), .done(all.2),
                ]
                if case .lost(let isAssisted, let hasTransport) = sealed {
                    if beginning == .invite {
                        if isAssisted { (wanted[2], wanted[3]) = (.fail, .fail) }
                    } else {
                        (wanted[2], wanted[3]) = (.makeKeysAgain, .fail)
                        if hasTransport { wanted[4] = .fail }
                    }
                }
                #expect(steps == wanted, "\(beginning), \(sealed)")
            }
        }
    }

    @Test("A renewal takes no nonce for another user")
    func otherUser() throws {
        for beginning in Self.beginnings {
            var ceremony = KeyCeremony(beginning, at: phases[2])
            if ceremony.isRenewal {
                #expect(throws: SigningProtocolError(.wrongAudience, "")) {
                    try ceremony.take(event(.nonce, sub: "mallory"))
                }
                #expect(ceremony.phase == phases[2])
            } else {
                #expect(try ceremony.take(event(.nonce, sub: "mallory")))
            }
        }
    }

    @Test("A refusal of the commitment for its offer leads back to the beginning, twice, and then to the end")
    func replacedOffer() throws {
        for beginning in Self.beginnings {
            var ceremony = KeyCeremony(beginning, at: phases[2])
            for left in [1, 0] {
                #expect(ceremony.refused(.hashMismatch) == .askAgain && ceremony.offersLeft == left)
                #expect(ceremony.phase == phases[2])
                #expect(try !ceremony.take(event(.offerForgotten)))
                for (kind, phase) in zip([Kind.keysForgotten, .offerForgotten, .offer, .keys], [1, 0, 1, 2]) {
                    #expect(try ceremony.take(event(kind)) && ceremony.phase == phases[phase])
                }
            }
            #expect(ceremony.refused(.hashMismatch) == .stopAsking && ceremony.phase == phases[2])
            for phase in [0, 1, 2] { ceremony.goOn(at: phases[phase]) }
            #expect(ceremony.refused(.hashMismatch) == .stopAsking && ceremony.offersLeft == 0)
            for kind in [Kind.nonce, .signed, .enrolled, .confirmed] { #expect(try ceremony.take(event(kind))) }
            #expect(ceremony.phase == phases[6])
        }
    }

    @Test("After each refusal in each phase: a renewal without a code is given up until it is complete, a reset never")
    func refusals() {
        let codes: [SigningErrorCode] = [
            .enrolmentVoid, .commitmentChanged, .unlockRequired, .keyRetired, .invalidRequest, .hashMismatch,
        ]
        for beginning in Self.beginnings {
            for (index, phase) in phases.enumerated() {
                for code in codes {
                    var ceremony = KeyCeremony(beginning, at: phase)
                    let reaction = ceremony.refused(code)
                    let isOver = index < 5 && (code == .enrolmentVoid || code == .commitmentChanged)
                    switch beginning {
                    case _ where index == 2 && code == .hashMismatch: #expect(reaction == .askAgain)
                    case .container(_, hasCode: false) where isOver: #expect(reaction == .giveUp)
                    case .container(_, hasCode: false) where index == 4 && code == .unlockRequired:
                        #expect(reaction == .endorseAgain)
                        #expect(ceremony.refused(code) == .fail)
                    default: #expect(reaction == .fail, "\(beginning), \(index), \(code)")
                    }
                    #expect(ceremony.phase == phase)
                }
            }
        }
    }

    @Test("From each stored phase it goes on to the end with the same bytes")
    func crashes() throws {
        for beginning in Self.beginnings {
            for (index, phase) in phases.enumerated() {
                let read = try #require(
                    KeyPhase(
                        offer: phase.offer, nonceD: phase.made?.nonceD, nonceS: phase.committed?.nonceS,
                        enrol: phase.signed?.enrol, echo: phase.echo, isConfirmed: phase.isConfirmed))
                #expect(read == phase)
                var ceremony = KeyCeremony(beginning, at: read)
                for kind in expected[index...].compactMap(\.self) { #expect(try ceremony.take(event(kind))) }
                #expect(ceremony.phase == phases[6])
            }
        }
    }

    @Test("What is stored of a later phase without an earlier one is no phase")
    func gaps() {
        for bits in 0..<64 {
            func has(_ bit: Int) -> Bool { bits >> bit & 1 == 1 }
            let phase = KeyPhase(
                offer: has(0) ? "offer" : nil, nonceD: has(1) ? nonceD : nil, nonceS: has(2) ? nonceS : nil,
                enrol: has(3) ? "enrol" : nil, echo: has(4) ? echo : nil, isConfirmed: has(5))
            #expect((phase != nil) == (bits & (bits + 1) == 0), "\(bits)")
        }
    }

    @Test("Any one reply that is held back and comes at any later moment, once or twice, changes nothing")
    func heldBack() throws {
        for beginning in Self.beginnings {
            for held in Kind.allCases {
                for moment in 0...6 {
                    var ceremony = KeyCeremony(beginning)
                    for (index, kind) in expected.enumerated() {
                        if index == moment, kind != held, held != .keysForgotten, held != .offerForgotten {
                            let before = ceremony.phase
                            for _ in 0..<2 { #expect(try !ceremony.take(event(held))) }
                            #expect(ceremony.phase == before)
                        }
                        guard let kind else { continue }
                        #expect(try ceremony.take(event(kind)))
                    }
                    #expect(ceremony.phase == phases[6])
                }
            }
        }
    }

    @Test("A random walk never goes back behind a commitment, and never has two key lists")
    func walk() throws {
        var random = SmallRandom(seed: 2024)
        let events = Kind.allCases.map { event($0) }
        var ceremony = KeyCeremony(Self.beginnings[1])
        for _ in 0..<(Soak.isOn ? 1_000_000 : 20_000) {
            let before = ceremony
            let isTaken = try ceremony.take(events.randomElement(using: &random) ?? events[0])
            #expect(isTaken == (before != ceremony))
            if let committed = before.phase.committed { #expect(ceremony.phase.committed == committed) }
            if let signed = before.phase.signed { #expect(ceremony.phase.signed == signed) }
            if ceremony.phase.isConfirmed {
                ceremony = KeyCeremony(Self.beginnings.randomElement(using: &random) ?? .invite)
            }
        }
    }
}
