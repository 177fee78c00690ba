package import AssentConfiguration
package import AssentCore
import AssentEnforcement
import AssentEngine
import Foundation
import Logging

/// Looks at everything that a gateway without an engine needs, and asks the engine for an access token, which changes
/// nothing but its audit log.
package enum GatewayExamination {
    /// Whether a file is that of a gateway without an engine.
    package static func concerns(file: String) -> Bool { GatewayServerConfiguration.describes(file: file) }

    /// What is found about the gateway of a configuration file.
    package static func findings(file: String, clock: any WallClock = SystemClock()) async -> [Diagnosis] {
        let configuration: GatewayServerConfiguration
        do {
            configuration = try GatewayServerConfiguration.load(file: file)
        } catch {
            return [Diagnosis(.problem, "\(error)")]
        }
        var findings = [Diagnosis(.fine, "\(file) has no mistake that can be seen in it")]
        findings.append(certificate(configuration, now: clock.now))
        findings += ports(configuration)
        findings += cached(configuration)
        findings += await engine(configuration, clock: clock)
        return findings
    }

    private static func certificate(_ configuration: GatewayServerConfiguration, now: Date) -> Diagnosis {
        do {
            let credentials = try ServerCredentials.files(
                certificate: configuration.certificate, privateKey: configuration.privateKey, in: configuration.file)
            if let host = try credentials.hostsNotNamed(in: [configuration.gateway.publicURL]).first {
                return Diagnosis(
                    .problem, "the certificate does not name \(host), which is in gateway.publicURL: clients refuse it")
            }
            if let fault = try credentials.fault(isRenewed: false, now: now) { return Diagnosis(.problem, "\(fault)") }
            return Diagnosis(.fine, "the certificate names the gateway's host and is valid")
        } catch {
            return Diagnosis(.problem, error.explanation)
        }
    }

    private static func ports(_ configuration: GatewayServerConfiguration) -> [Diagnosis] {
        var ports = [("gateway.port", configuration.gateway.port)]
        if let port = configuration.healthPort { ports.append(("listen.healthPort", port)) }
        return ports.compactMap { key, port in
            let address = ListenAddress(host: configuration.host, port: port)
            if let fault = address.fault { return Diagnosis(.problem, fault) }
            guard port != 0, address.isTaken else { return nil }
            return Diagnosis(.note, "\(key) \(port) is in use: by this gateway, or by another program")
        }
    }

    private static func cached(_ configuration: GatewayServerConfiguration) -> [Diagnosis] {
        configuration.gateway.routes.filter { $0.cacheSeconds > 0 }.map {
            Diagnosis(
                .note,
                "the route \($0.name) sees the end of a session up to \($0.cacheSeconds) seconds late (cacheSeconds)")
        }
    }

    /// What the engine says to the gateway's client of each realm.
    static func engine(_ configuration: GatewayServerConfiguration, clock: any WallClock) async -> [Diagnosis] {
        let engine = configuration.engine
        let transport: EngineTransport
        do {
            transport = try EngineTransport(
                engine, clock: clock, logger: Logger(label: "assent.doctor") { _ in SwiftLogNoOpLogHandler() })
        } catch {
            return [Diagnosis(.problem, "the engine cannot be called: \(error.explanation)")]
        }
        var findings: [Diagnosis] = []
        for (realm, client) in engine.realms.sorted(by: { $0.key < $1.key }) {
            do {
                let random = SystemRandom()
                let account = try engine.account(
                    of: client, realm: realm,
                    over: try engine.transport(of: client, over: transport, clock: clock, random: random),
                    clock: clock, random: random)
                _ = try await account.session(replacing: nil)
                findings.append(Diagnosis(.fine, "the engine knows the client \(client.id) of \(realm)"))
            } catch {
                findings.append(Diagnosis(.problem, "realm \(realm): \(explanation(of: error))"))
            }
        }
        await transport.shutdown()
        return findings
    }

    /// What an operator does about it: the error's own advice is for a service that has a request to answer.
    private static func explanation(of error: any Error) -> String {
        guard let error = error as? EnforcementError else { return error.explanation }
        switch error.code {
        case .notSignedIn:
            return "\(error.detail) Compare clientID, and its secret or key, with the client in the server's file."
        case .unavailable:
            return "\(error.detail) Start the server, or correct engine.url, engine.authorities or engine.pins."
        default: return error.explanation
        }
    }
}
