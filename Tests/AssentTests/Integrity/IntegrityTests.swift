import HTTPTypes
import Assent
import AssentPeers
import AssentTesting
import Foundation
import IntegrityTesting
import Testing

@Suite("Probes before each fetch")
struct IntegrityTests {
    /// A probe that finds what a test says.
    private struct Injected: IntegrityProbe {
        let kind: IntegrityKind
        let found: Locked<String?>
        var asked = Locked(0)

        init(_ kind: IntegrityKind, _ found: String? = "A test says so.") {
            (self.kind, self.found) = (kind, Locked(found))
        }

        func finding() -> String? {
            asked.withLock { $0 += 1 }
            return found.withLock { $0 }
        }
    }

    private static func controls(_ kind: IntegrityKind, _ control: IntegrityControl) -> IntegrityControls {
        IntegrityControls(
            debugger: kind == .debugger ? control : .off, preload: kind == .preload ? control : .off,
            rooted: kind == .rooted ? control : .off)
    }

    @Test(
        "4, 5 Each kind of finding refuses each kind of fetch, or none, as the app says",
        arguments: IntegrityKind.allCases)
    func matrix(kind: IntegrityKind) async throws {
        for control in IntegrityControl.allCases {
            let directory = try TemporaryDirectory()
            let fetches = try EachFetch(keys: directory.url.appending(path: "keys")) {
                $0.integrity.probes = [Injected(kind)]
                $0.integrity.controls = Self.controls(kind, control)
            }
            try await fetches.signIn()
            for fetch in EachFetch.Kind.allCases {
                let before = fetches.sent
                let isRefused = await fetches.isRefused(fetch)
                #expect(isRefused == (control == .refuse), "\(fetch), \(control)")
                #expect((fetches.sent > before) == (control != .refuse && fetch.sends), "\(fetch), \(control)")
            }
        }
    }

    @Test("4 With a trust file nothing is asked before the probes, either: not what this version of the app may do")
    func trusted() async throws {
        let directory = try TemporaryDirectory()
        let servers = Servers()
        let file = try await servers.trustFile(sends: ["user", "implicit", "device"], development: true)
        func fetches(_ control: IntegrityControl) async throws -> EachFetch {
            let made = try EachFetch(keys: directory.url.appending(path: control.rawValue)) {
                $0.clock = servers.clock
                $0.trust = file
                $0.resources = [:]
                $0.integrity.probes = [Injected(.debugger)]
                $0.integrity.controls = Self.controls(.debugger, control)
            }
            try await made.signIn()
            return made
        }
        let refused = try await fetches(.refuse)
        for fetch in EachFetch.Kind.allCases {
            #expect(await refused.isRefused(fetch), "\(fetch)")
            #expect(refused.sent == 0, "\(fetch)")
        }
        let rules = await #expect(throws: ResourceError.self) { try await refused.assent.pinRules() }
        #expect(rules?.code == .integrityFailed && refused.sent == 0)
        // The control: the server is asked where nothing is refused.
        let reported = try await fetches(.report)
        #expect(try await reported.assent.pinRules() == nil)
        #expect(reported.sent > 0)
    }

    @Test("All probes are asked, the request is not looked at, and the error names the first probe that refuses")
    func order() async throws {
        let directory = try TemporaryDirectory()
        let probes = [Injected(.rooted), Injected(.preload, nil), Injected(.debugger)]
        let fetches = try EachFetch(keys: directory.url.appending(path: "keys")) {
            $0.integrity.probes = probes
            $0.integrity.controls = IntegrityControls(debugger: .refuse, preload: .refuse, rooted: .report)
        }
        let atStart = probes.map { $0.asked.withLock { $0 } }
        #expect(atStart == [1, 1, 1])
        let wrong = ResourceRequest(path: "..", method: .trace, headers: [.authorization: "Bearer x"])
        let error = await #expect(throws: ResourceError.self) {
            try await fetches.assent.userClient.sendAuthenticatedRequest(wrong)
        }
        #expect(error?.code == .integrityFailed && error?.number == 9102 && error?.domain == .generic)
        #expect(error?.probe == "debugger" && error?.isTransient == false)
        #expect(probes.map { $0.asked.withLock { $0 } } == [2, 2, 2])
        probes[2].found.withLock { $0 = nil }
        let later = await #expect(throws: ResourceError.self) {
            try await fetches.assent.userClient.sendAuthenticatedRequest(wrong)
        }
        #expect(later?.code == .invalidMethod)
    }

    @Test("A fetch asks each probe once; what it sends again, or sends late, asks once more")
    func once() async throws {
        let directory = try TemporaryDirectory()
        let clock = ManualClock()
        let probe = Injected(.debugger, nil)
        let fetches = try EachFetch(keys: directory.url.appending(path: "keys")) {
            $0.integrity.probes = [probe]
            $0.clock = clock
            // A session is there; to get an access token would be calls of their own.
            $0.resources = ["https://api.bank.example": .session]
        }
        try await fetches.signIn()
        func asked(_ fetch: EachFetch.Kind) async throws -> Int {
            let before = probe.asked.withLock { $0 }
            #expect(await fetches.isRefused(fetch) == false)
            return probe.asked.withLock { $0 } - before
        }
        #expect(try await asked(.nobody) == 1)
        #expect(try await asked(.nobody) == 1)
        #expect(try await asked(.user) == 1)
        #expect(try await asked(.user) == 1)
        #expect(try await asked(.facade) == 1)
    }

    @Test("An examination counts for one sending, and for a second at most")
    func examination() {
        let start = Date(timeIntervalSince1970: 1_767_225_600)
        for (seconds, isTaken) in [(0.0, true), (1, true), (1.1, false), (-0.1, false)] {
            let examination = IntegrityExamination(at: start)
            #expect(examination.take(at: start.addingTimeInterval(seconds)) == isTaken, "\(seconds)")
            #expect(examination.take(at: start.addingTimeInterval(seconds)) == false)
        }
    }

    @Test("Passes: what attaches between the probes and the sending; the next fetch is refused")
    func between() async throws {
        let directory = try TemporaryDirectory()
        let probe = Injected(.debugger, nil)
        let fetches = try EachFetch(
            keys: directory.url.appending(path: "keys"),
            onSending: { probe.found.withLock { $0 = "Another program traces this process." } },
            {
                $0.integrity.probes = [probe]
                $0.integrity.controls.debugger = .refuse
            })
        #expect(await fetches.isRefused(.nobody) == false)
        #expect(fetches.sent == 1)
        #expect(await fetches.isRefused(.nobody))
        #expect(fetches.sent == 1)
    }
}
