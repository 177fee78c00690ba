import Assent
import AssentConfiguration
import AssentCore
import AssentTransportNIO
import Foundation

/// Compares the pins of one server with the CA's file and with the certificates that it shows.
struct PinExamination {
    let client: ClientFile
    let origin: Origin

    /// The certificates of the CA's file.
    let authorities: [CertificateKey]

    let clock: any WallClock

    /// A least time for a connection.
    let leastLimit: Duration?

    func findings() async -> [Diagnosis] {
        let name = origin.authority
        guard let entry = entry else {
            return [
                Diagnosis(
                    .problem,
                    "\(name) has no pins, so it is not called: put two under pins, the server's key and its issuer's")
            ]
        }
        var findings: [Diagnosis] = []
        if entry.isSingle {
            findings.append(
                Diagnosis(
                    .note,
                    "\(name) has one pin without a backup, on purpose (singlePin): a new key locks this client "
                        + "out"))
        }
        do {
            let configuration = client.configuration(vault: .memory)
            var transport = NIOTransportConfiguration(trustRoots: configuration.trustRoots, pins: configuration.pins)
            transport.maximumConnectionsPerOrigin = 1
            transport.leastLimit = leastLimit
            let served = try await ServedChain.look(at: origin, configuration: transport, clock: clock)
            findings += compared(Array(entry.distinct), with: served)
        } catch let error as HTTPTransportError {
            findings += unseen(entry.distinct, error)
        } catch {
            findings.append(Diagnosis(.problem, "\(name): \(error.explanation)"))
        }
        return findings
    }

    /// The pins that apply: those of host and port, else those of the host.
    private var entry: ClientFile.HostPins? {
        let exact = client.pins.first {
            (try? NormalizedHost($0.host)) == nil && (try? Origin(headerValue: "https://\($0.host)")) == origin
        }
        return exact ?? client.pins.first { (try? NormalizedHost($0.host)) == origin.host }
    }

    private func compared(_ pins: [Pin], with served: ServedChain) -> [Diagnosis] {
        let name = origin.authority
        if let refusal = served.refusal, refusal.code != .pinMismatch {
            return [
                Diagnosis(
                    .problem,
                    "\(name) is not trusted. \(refusal.detail) It shows \(list(served.presented)). "
                        + "Is authority the right CA's file, and is this the right server?")
            ]
        }
        var findings = pins.map { pin in
            if let index = served.path.firstIndex(where: { $0.pin == pin }) {
                return Diagnosis(
                    .fine, "\(name): \(pin) is \(role(index, of: served.path)), \(served.path[index].subject)")
            }
            return Diagnosis(.note, "\(name): \(pin) is a backup: \(elsewhere(pin, served))")
        }
        guard served.refusal == nil else {
            let keys = served.path.indices.map { "\(role($0, of: served.path)) \(served.path[$0].pin)" }
            findings.append(
                Diagnosis(
                    .problem,
                    "\(name): no pin is in the chain that it shows (\(keys.joined(separator: ", "))), so nothing is "
                        + "sent there. If its keys were changed on purpose, get the new client.yaml from its operator, not "
                        + "over this connection: assent login --config …/client.yaml. If not, someone may be between you and the server"
                ))
            return findings
        }
        if let leaf = served.path.first, !pins.contains(leaf.pin), pins.count > 1 {
            findings.append(
                Diagnosis(
                    .note,
                    "\(name): the server's own key \(leaf.pin) is not pinned, only a key above it: if the server "
                        + "has a new key, its new client.yaml restores the backup"))
        }
        return findings
    }

    private func elsewhere(_ pin: Pin, _ served: ServedChain) -> String {
        if let authority = authorities.first(where: { $0.pin == pin }) {
            return "the key of \(authority.subject) in the CA's file, not in the chain that is shown"
        }
        if served.presented.contains(where: { $0.pin == pin }) {
            return "its certificate is shown, but is not part of the validated chain"
        }
        return "it is in no certificate that is shown, nor in the CA's file"
    }

    /// Without the server, only the CA's file is there to compare with.
    private func unseen(_ pins: [Pin], _ error: HTTPTransportError) -> [Diagnosis] {
        let name = origin.authority
        guard [.connectFailed, .nameNotResolved, .timedOut].contains(error.code) else {
            let text = "\(name) answers, but a TLS connection could not be made. \(error.detail) Is it the right port?"
            return [Diagnosis(.problem, text)]
        }
        var findings = [
            Diagnosis(
                .note,
                "\(name) could not be looked at. \(error.detail) So its pins are compared with the CA's file "
                    + "alone. Start the server, or find out why it is not reached, and ask again")
        ]
        for pin in pins {
            if let authority = authorities.first(where: { $0.pin == pin }) {
                findings.append(Diagnosis(.fine, "\(name): \(pin) is in the CA's file, \(authority.subject)"))
            }
        }
        return findings
    }

    private func role(_ index: Int, of path: [CertificateKey]) -> String {
        if index == 0 { return "the leaf's" }
        return index == path.count - 1 ? "the root's" : "an intermediate's"
    }

    private func list(_ keys: [CertificateKey]) -> String {
        keys.isEmpty ? "nothing that can be read" : keys.map { "\($0.subject) \($0.pin)" }.joined(separator: ", ")
    }
}

extension ClientFile.HostPins {
    /// Each pin once, in the file's order.
    fileprivate var distinct: [Pin] {
        var seen: Set<Pin> = []
        return pins.filter { seen.insert($0).inserted }
    }
}
