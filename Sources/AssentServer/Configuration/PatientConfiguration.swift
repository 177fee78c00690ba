import AssentStore
import NIOCore

// What runs by the machine's own clock, whatever clock a server goes by.

extension ServerConfiguration {
    /// Lets everything that others may be slow with take so many seconds, but for what its file says otherwise: for
    /// tests, which must not fail because a machine is busy or stands still.
    package mutating func bePatient(seconds: Int) {
        outbound.timeout = .seconds(seconds)
        idleSeconds = seconds
        bodies.server.bePatient(seconds: seconds)
        bodies.gateway.bePatient(seconds: seconds)
        gateway?.bePatient(seconds: seconds)
        postgreSQL?.bePatient(seconds: seconds)
    }

    /// The same for a server that is a process of its own: bodies have to end there, and databases go away, so it has
    /// the usual limits for those. A stop waits as long for its last messages.
    package mutating func waitForOthers(seconds: Int) {
        idleSeconds = seconds
        recordingSeconds = seconds
        gateway?.bePatient(seconds: seconds)
        postgreSQL?.raiseWaits(toSeconds: seconds)
    }
}

extension GatewayServerConfiguration {
    /// The same for a gateway elsewhere, also with what it asks.
    package mutating func bePatient(seconds: Int) {
        waitForOthers(seconds: seconds)
        bodies.bePatient(seconds: seconds)
    }

    /// The same but for requests' bodies.
    package mutating func waitForOthers(seconds: Int) {
        engine.leastLimit = .seconds(seconds)
        idleSeconds = seconds
        reportingSeconds = seconds
        gateway.bePatient(seconds: seconds)
    }
}

extension GatewayConfiguration {
    fileprivate mutating func bePatient(seconds: Int) {
        for index in routes.indices {
            routes[index].upstream.timeouts.bePatient(seconds: seconds)
            routes[index].tunnels?.bePatient(seconds: seconds)
        }
    }
}

extension UpstreamSettings.Timeouts {
    /// The same for one service, but for what is not as usual.
    mutating func bePatient(seconds: Int) {
        let usual = UpstreamSettings.Timeouts()
        if connect == usual.connect { connect = seconds }
        if head == usual.head { head = seconds }
        if silence == usual.silence { silence = seconds }
    }
}

extension RouteTunnels {
    fileprivate mutating func bePatient(seconds: Int) {
        (connectSeconds, answerSeconds, closeSeconds) = (seconds, seconds, seconds)
        if silenceSeconds == RouteTunnels().silenceSeconds { silenceSeconds = seconds }
    }
}

extension BodyLimits {
    fileprivate mutating func bePatient(seconds: Int) {
        grace = .seconds(Int64(seconds))
        if total != nil { total = grace }
    }
}
