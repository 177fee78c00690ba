import Testing

@testable import AssentServer

@Suite("The life of a tunnel")
struct TunnelLifeTests {
    private static let limits = TunnelLife.Limits(silence: 100, recheck: 30)

    @Test("It is quiet until the caller is due, and each look moves the next one")
    func rechecks() {
        var life = TunnelLife(Self.limits, at: 1000)
        #expect(life.next(at: 1000) == .wait(until: 1030))
        #expect(life.next(at: 1029) == .wait(until: 1030))
        #expect(life.next(at: 1030) == .check)
        #expect(life.next(at: 1050) == .check, "a look that is late is still due")
        life.checked(isGranted: true, at: 1050)
        #expect(life.next(at: 1050) == .wait(until: 1080))
        #expect(life.next(at: 1080) == .check)
    }

    @Test("Silence ends it, whichever end was heard last, and looks at the caller do not count")
    func silence() {
        var life = TunnelLife(Self.limits, at: 0)
        for time in [30, 60, 90] as [Int64] { life.checked(isGranted: true, at: time) }
        #expect(life.next(at: 95) == .wait(until: 100))
        #expect(life.next(at: 100) == .close(.silent))
        life.heard(at: 99)
        life.checked(isGranted: true, at: 100)
        #expect(life.next(at: 100) == .wait(until: 130))
        // What was heard earlier takes nothing back.
        life.heard(at: 10)
        life.checked(isGranted: true, at: 190)
        #expect(life.next(at: 198) == .wait(until: 199))
        #expect(life.next(at: 199) == .close(.silent))
    }

    @Test("A refusal ends it for good")
    func refusal() {
        var life = TunnelLife(Self.limits, at: 0)
        life.checked(isGranted: false, at: 30)
        life.checked(isGranted: true, at: 31)
        life.heard(at: 32)
        for time in [30, 31, 1000] as [Int64] { #expect(life.next(at: time) == .close(.refused)) }
    }

    @Test("Where nobody was asked who they are, only silence ends it")
    func nobody() {
        var life = TunnelLife(TunnelLife.Limits(silence: 100, recheck: nil), at: 0)
        #expect(life.next(at: 99) == .wait(until: 100))
        life.heard(at: 99)
        #expect(life.next(at: 150) == .wait(until: 199))
        #expect(life.next(at: 199) == .close(.silent))
    }
}
