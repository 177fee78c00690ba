import Testing

@testable import Assent

@Suite("The steps of a login with a PIN")
struct PINLoginTests {
    typealias Phase = PINLogin.Phase
    typealias Event = PINLogin.Event

    static let phases: [Phase] =
        [.judging, .loggedIn] + [true, false].flatMap { [.opening(isAgain: $0), .requesting(isAgain: $0)] }
        + PINLogin.Outcome.allCases.map { .failed($0) }
    static let events: [Event] =
        [.opened, .granted, .status(hasEnded: true), .status(hasEnded: false)]
        + PINLogin.Failure.allCases.map { .failed($0) }

    /// What an event makes of a phase, written down once more.
    private func expected(_ phase: Phase, _ event: Event) -> Phase {
        switch (phase, event) {
        case (.opening(let isAgain), .opened): .requesting(isAgain: isAgain)
        case (.requesting, .granted): .loggedIn
        case (.judging, .status(hasEnded: true)): .failed(.deregistered)
        case (.judging, .status(hasEnded: false)), (.judging, .failed): .failed(.other)
        case (.opening(isAgain: false), .failed(.noAnswer)), (.requesting(isAgain: false), .failed(.noAnswer)),
            (.opening(isAgain: false), .failed(.unlockNeeded)), (.requesting(isAgain: false), .failed(.unlockNeeded)):
            .opening(isAgain: true)
        case (.opening, .failed(let failure)), (.requesting, .failed(let failure)):
            switch failure {
            case .noAnswer: .failed(.noAnswer)
            case .wrongPIN: .failed(.wrongPIN)
            case .locked: .failed(.locked)
            case .gone: .judging
            case .expired: .failed(.expired)
            case .unlockNeeded, .other: .failed(.other)
            }
        default: phase
        }
    }

    @Test("Each event in each phase; only a signed status ends what remembers a user")
    func everyEvent() {
        for phase in Self.phases {
            for event in Self.events {
                var login = PINLogin(at: phase)
                let isTaken = login.take(event)
                #expect(login.phase == expected(phase, event), "\(phase), \(event)")
                #expect(isTaken == (login.phase != phase), "\(phase), \(event)")
                if login.phase == .failed(.deregistered), phase != login.phase {
                    #expect(event == .status(hasEnded: true))
                }
            }
        }
    }

    @Test("What is done in each phase")
    func steps() {
        for phase in Self.phases {
            let step: PINLogin.Step =
                switch phase {
                case .opening: .open
                case .requesting: .request
                case .judging: .askStatus
                case .loggedIn: .done
                case .failed(let outcome): .fail(outcome)
                }
            #expect(PINLogin(at: phase).next == step)
        }
        #expect(PINLogin().next == .open)
    }

    @Test("Whatever answers are lost, all calls are made twice at most")
    func bounded() {
        var login = PINLogin()
        var opened = 0
        while true {
            switch login.next {
            case .open:
                opened += 1
                _ = login.take(.opened)
            case .request: _ = login.take(.failed(.noAnswer))
            case .askStatus, .done:
                Issue.record("not reached")
                return
            case .fail(let outcome):
                #expect(outcome == .noAnswer && opened == 2)
                return
            }
        }
    }

    @Test("What an error means: a signed wrong PIN is the PIN's, and what the server says unsigned is asked about")
    func failures() {
        let codes: [(SigningError.Code, PINLogin.Failure)] = [
            (.wrongPassword, .wrongPIN), (.passwordLocked, .locked), (.passwordDestroyed, .gone),
            (.credentialsLost, .gone), (.containerRevoked, .gone), (.unknownContainer, .gone), (.keyExpired, .expired),
            (.unlockRequired, .unlockNeeded), (.remote, .noAnswer), (.unavailable, .noAnswer),
            (.passwordWait, .other), (.containerBlocked, .other), (.passwordExpired, .other),
        ]
        for (code, failure) in codes { #expect(PINLogin.Failure(SigningError(code)) == failure, "\(code)") }
        #expect(PINLogin.Failure(TokenError(.transport, "", transportError: .init(.timedOut, ""))) == .noAnswer)
        #expect(PINLogin.Failure(TokenError(.tokenRefused, "", oauthError: "invalid_grant")) == .other)
        #expect(PINLogin.Failure(CancellationError()) == .other)
    }

    @Test("4: What a probe finds between the calls of a login is told as that, and not as a user who is unknown")
    func probes() {
        let found = ResourceError.ofLogin(SigningError(.integrityFailed, "A test says so."))
        #expect(found.code == .integrityFailed && found.number == 9102 && found.domain == .generic)
        #expect(found.detail == "A test says so.")
        #expect(ResourceError.ofLogin(SigningError(.keyExpired)).code == .userNotAuthenticated)
    }
}
