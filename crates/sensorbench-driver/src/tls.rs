//! Encryption of connections, as the URL asks for it: the same for every driver that speaks TLS by itself.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use crate::{DriverError, TargetUrl, Tls, TlsMode};

impl Tls {
    /// Chooses the implementation of ciphers for libraries that set encryption up by themselves, as ours is chosen: of two that are in a
    /// program, rustls takes neither.
    pub fn choose_ciphers() {
        // Whoever chose before has chosen the same.
        let _ = ring::default_provider().install_default();
    }

    /// How connections are encrypted. Where encryption is off nobody asks for it.
    pub fn client_config(&self, url: &TargetUrl) -> Result<ClientConfig, DriverError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| url.error(error))?
            .with_root_certificates(roots(url, self.ca.as_deref())?);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(url, key, error))?;
                let identified = builder.with_client_auth_cert(certificates(url, certificate)?, private);
                identified.map_err(|error| refused(url, certificate, error))?
            }
        };
        if self.mode == TlsMode::Unverified {
            config.dangerous().set_certificate_verifier(Arc::new(AnyCertificate(provider)));
        }
        Ok(config)
    }
}

/// The authorities in a file, else the well-known ones.
fn roots(url: &TargetUrl, file: Option<&Path>) -> Result<RootCertStore, DriverError> {
    let Some(file) = file else { return Ok(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()) };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(url, file)? {
        roots.add(certificate).map_err(|error| refused(url, file, error))?;
    }
    Ok(roots)
}

fn certificates(url: &TargetUrl, file: &Path) -> Result<Vec<CertificateDer<'static>>, DriverError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| unreadable(url, file, error))?;
    if certificates.is_empty() { Err(unreadable(url, file, "there is no certificate in it")) } else { Ok(certificates) }
}

fn unreadable(url: &TargetUrl, file: &Path, error: impl Display) -> DriverError {
    refused(url, file, format!("{error}; expected PEM"))
}

fn refused(url: &TargetUrl, file: &Path, error: impl Display) -> DriverError {
    url.error(format!("{}: {error}", file.display()))
}

/// Takes any certificate, as `tls=unverified` says; that the server has the certificate's key is still checked.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
