import Assent
import AssentSigning
import Foundation

/// Says at the terminal what a listening device hears besides transactions, and renews keys that are near their end.
struct ListenEvents: Sendable {
    let console: Console
    let device: SigningDevice
    let container: SigningContainer

    /// Prints one event. It never asks for anything: nobody may be there.
    func hear(_ event: SigningEvent) async {
        switch event {
        case .notice(let notice): console.warn(Self.line(notice))
        case .renewalDue(needsPassword: true):
            console.warn(
                "The container's keys expire on \(Self.text(await expiry)). New ones need your PIN or password: "
                    + "assent device renew")
        case .renewalDue(needsPassword: false): await renew()
        }
    }

    private func renew() async {
        do {
            guard try await container.renew().isDone else { return }
            let until = try await container.renewed().expiresAt
            console.say("The container has new keys, until \(Self.text(until)).")
        } catch let error as any AssentError {
            console.warn(
                DisplayText.escapedForTerminal(
                    "The container's keys expire on \(Self.text(await expiry)), and could not be renewed: "
                        + "\(error.detail) [\(error.code)]"))
        } catch {
            console.warn("The container's keys could not be renewed. Try: assent device renew")
        }
    }

    /// When the keys expire that it has now: they may have been renewed since it began to listen.
    private var expiry: Date {
        get async { (try? await device.container(container.id).expiresAt) ?? container.expiresAt }
    }

    private static func text(_ date: Date) -> String { date.formatted(.iso8601) }

    /// What a notice says.
    static func line(_ notice: SigningNotice) -> String {
        let name = DisplayText.escapedForTerminal(notice.containerName)
        let what =
            switch notice.event {
            case .enrolled: "was enrolled for you"
            case .reset: "has got new keys after a reset"
            case .suspect: "is suspected to have been copied, and approves nothing more"
            case .removed: "was removed"
            }
        return "\(text(notice.date)): the device \(name) \(what). If that was not you, tell the issuer at once."
    }
}
